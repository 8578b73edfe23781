package spec

import (
	"fmt"
	"io"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"moontide/trace"
)

// DefaultRequests is the number of requests of a description that limits
// neither requests nor time.
const DefaultRequests = 100

// Options say where a description comes from. The zero value is a text alone.
type Options struct {
	Name     string    // of the file, in errors
	Settings []Setting // put over what the text says, or all there is
	// Open opens the files that the description names; without it there are
	// none. A name in the text is joined to Folder, a name in a setting is
	// passed on as it is.
	Open   func(path string) (io.ReadCloser, error)
	Folder string
}

// Setting is one value given outside of the text, such as by a flag.
type Setting struct {
	Key   string // with a dot before a key within a key: sessions.turns
	Value string // as the text would have it, on one line
	From  string // what errors call it: --turns
}

// Spec is what a trace is to be like, free of contradictions. It does
// not change and may be used by any number of goroutines at once.
type Spec struct {
	blockSize int
	requests  int     // 0: no limit
	duration  float64 // seconds; 0: no limit
	seed      uint64
	declares  bool // rows say which part of their prompt is shared
	common    *shared
	sources   []source
	sharedIDs uint64 // of the blocks of shared prefixes: the first so many
}

// source is a process of arrivals and the clients that it is shared out among.
type source struct {
	name     string // of its random numbers
	arrivals *arrivals
	clients  []*client
}

// BlockSize is the number of tokens of a block.
func (d *Spec) BlockSize() int { return d.blockSize }

// Parse reads a description; see the package comment for what may stand in it.
// Everything that contradicts itself or cannot be drawn is an error here, with
// the line and column or the setting that is to blame. It reads the files that
// are named.
func Parse(text []byte, o Options) (*Spec, error) {
	if o.Name == "" {
		o.Name = "description"
	}
	root, err := parseText(text, o.Name)
	if err != nil {
		return nil, err
	}
	r := &reading{open: opener{o.Open, o.Folder}, block: trace.DefaultBlockSize}
	for _, s := range o.Settings {
		r.override(root, s)
	}
	d := r.description(root)
	if r.err != nil {
		return nil, r.err
	}
	return d, nil
}

// override puts a setting over the text.
func (r *reading) override(root *node, s Setting) {
	top, _, _ := strings.Cut(s.Key, ".")
	if clients := root.at("clients"); clients != nil {
		for _, c := range clients.items {
			if own := c.at(top); own != nil {
				r.fail(s.From, "%s stands in a client of its own at %s: a setting holds for all", top, own.place)
			}
		}
	}
	at, path := root, strings.Split(s.Key, ".")
	for _, key := range path[:len(path)-1] {
		within := at.at(key)
		switch {
		case within == nil:
			within = &node{place: s.From, kind: mapping}
		case within.kind == scalar && key == "arrival":
			within = within.inFull("process")
		case within.kind != mapping:
			r.fail(s.From, "%s is %v at %s: nothing in it can be set", key, within.kind, within.place)
			return
		}
		at.set(key, within)
		at = within
	}
	at.set(path[len(path)-1], &node{place: s.From, text: s.Value})
}

var topKeys = append([]string{"num_requests", "duration", "block_size", "seed", "rate", "arrival", "clients"}, clientKeys...)

func (r *reading) description(root *node) *Spec {
	f := r.fields(root, "", topKeys...)
	d := &Spec{
		requests:  f.whole("num_requests", 0, span{1, 1e12}),
		duration:  f.seconds("duration", 0, span{1e-6, 100 * year}),
		blockSize: f.whole("block_size", trace.DefaultBlockSize, span{1, trace.MaxLength}),
		seed:      f.seed(),
	}
	r.block = max(d.blockSize, 1)
	if n := root.at("shared"); n != nil && !r.failed() {
		d.common = r.shared(n)
	}
	if root.at("clients") == nil {
		c := r.client(root, "", d.common)
		d.sources = []source{{"arrivals", r.arrivals(root.at("arrival"), root.at("rate")), []*client{c}}}
	} else {
		r.clients(d, root)
	}
	if !r.failed() {
		for c := range d.clients() {
			d.declares = d.declares || c.shared != nil || c.sessions.several
		}
		d.grow()
		d.countTurns()
		d.limit(f)
	}
	return d
}

// clients are all clients in the order of their sources.
func (d *Spec) clients() iter.Seq[*client] {
	return func(yield func(*client) bool) {
		for _, s := range d.sources {
			for _, c := range s.clients {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// seed is a whole number of 64 bits.
func (f fields) seed() uint64 {
	text := f.text("seed")
	if text == "" {
		return 0
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		f.fail(f.place("seed"), "seed is not a whole number from 0 to 2^64-1: %s", quote(text))
	}
	return seed
}

// limit settles how much is drawn where the description does not say.
func (d *Spec) limit(f fields) {
	if d.requests == 0 && d.duration == 0 {
		for _, s := range d.sources {
			scale, _ := s.scale()
			d.duration = max(d.duration, s.arrivals.length(scale))
		}
		if d.duration == 0 {
			d.requests = DefaultRequests
		}
	}
	dry := func(s source) bool { return s.arrivals.runsDry() }
	if d.duration == 0 && !slices.ContainsFunc(d.sources, func(s source) bool { return !dry(s) }) {
		f.fail(f.place("num_requests"), "num_requests may never be reached, for the rate ends at 0: want a duration too, phases that repeat, or a last rate above 0")
	}
}

var clientName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,40}$`)

// clients reads the list of clients. Those with a share are served by one
// process of arrivals, the others have their own.
func (r *reading) clients(d *Spec, root *node) {
	n := root.at("clients")
	if n.kind != list || len(n.items) == 0 || len(n.items) > 1000 {
		r.fail(n.place, "clients is not a list of 1 to 1000 clients")
		return
	}
	mixed := source{name: "arrivals"}
	var shares []float64
	names := map[string]bool{}
	for i, item := range n.items {
		f := r.fields(item, "clients", append([]string{"name", "share", "rate", "arrival"}, clientKeys...)...)
		name := f.clientName(i, names)
		own := f.has("rate") || f.has("arrival")
		common := d.common
		if f.has("shared") {
			common = nil
		}
		share := 1.0
		if !own {
			if !f.has("share") && len(n.items) > 1 {
				f.fail(item.place, "a client needs a share of the rate, or a rate of its own")
			}
			share = f.number("share", 1, span{1e-6, 1})
		}
		if f.onlyOne("share", "rate"); f.has("share") && f.has("arrival") {
			f.fail(f.place("arrival"), "a client with a share has the arrivals of the top, not its own")
		}
		c := r.client(inherit(item, root), name, common)
		if r.failed() {
			return
		}
		if own {
			d.sources = append(d.sources, source{"arrivals of " + name, r.ownArrivals(item, root), []*client{c}})
			continue
		}
		c.share = share
		shares = append(shares, share)
		mixed.clients = append(mixed.clients, c)
	}
	switch {
	case len(mixed.clients) > 0:
		r.shares(n.place, "clients", shares)
		mixed.arrivals = r.arrivals(root.at("arrival"), root.at("rate"))
		d.sources = slices.Insert(d.sources, 0, mixed)
	case root.at("rate") != nil:
		r.fail(root.at("rate").place, "every client has arrivals of its own, and nothing is left of this rate")
	}
}

// ownArrivals reads the arrivals of a client: what it does not say itself is
// as at the top.
func (r *reading) ownArrivals(client, root *node) *arrivals {
	process := client.at("arrival")
	if process == nil {
		process = root.at("arrival")
	}
	return r.arrivals(process, client.at("rate"))
}

func (f fields) clientName(i int, taken map[string]bool) string {
	name := f.text("name")
	if !f.has("name") {
		name = fmt.Sprintf("client%d", i+1)
	}
	switch {
	case f.failed():
	case !clientName.MatchString(name):
		f.fail(f.place("name"), "name is not of 1 to 40 letters, digits and _.-: %s", quote(name))
	case taken[name]:
		f.fail(f.place("name"), "two clients have the name %s", quote(name))
	}
	taken[name] = true
	return name
}

// inherit is a client with what the top says for all clients. Lengths go
// together: laws for ISL and OSL, or pairs.
func inherit(client, root *node) *node {
	whole := &node{place: client.place, inFile: client.inFile, kind: mapping, entries: slices.Clone(client.entries)}
	joint := client.at("lengths") != nil
	prompt := client.at("isl") != nil || client.at("unique_isl") != nil
	marginal := prompt || client.at("osl") != nil || client.at("correlation") != nil
	for _, e := range root.entries {
		switch {
		case !slices.Contains(clientKeys, e.key) || client.at(e.key) != nil:
		case e.key == "shared": // one tree for all
		case joint && slices.Contains([]string{"isl", "unique_isl", "osl", "correlation"}, e.key):
		case prompt && (e.key == "isl" || e.key == "unique_isl"):
		case marginal && e.key == "lengths":
		default:
			whole.entries = append(whole.entries, e)
		}
	}
	return whole
}

// scale is by how much the process of a source, whose rate is in requests, is
// slowed down to start sessions; weights are the shares of the clients in
// these, added up to 1.
func (s source) scale() (scale float64, weights []float64) {
	for _, c := range s.clients {
		scale += c.share / c.sessions.meanTurns
	}
	var sum float64
	for _, c := range s.clients {
		sum += c.share / c.sessions.meanTurns / scale
		weights = append(weights, sum)
	}
	weights[len(weights)-1] = math.Inf(1)
	return scale, weights
}
