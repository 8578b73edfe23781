package spec

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"moontide/synth"
	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/yaml"
)

// DefaultRequests is the number of requests of a spec that limits neither
// requests nor duration.
const DefaultRequests = 100

// Options configures [Parse].
type Options struct {
	Name     string    // of the file, in errors
	Settings []Setting // override the text
	// BlockSize is the block size in tokens unless the spec sets one, or shares
	// prefixes that it does not divide; 0 is [block.DefaultSize].
	BlockSize int
}

// Setting is a value set outside of the text, for example by a flag.
type Setting struct {
	Key   string // with dots between nested keys: sessions.turns
	Value string // as in the text, on one line
	From  string // name of its origin, for errors
}

// Spec describes a trace. It is valid, immutable, and safe for concurrent use.
type Spec struct {
	blockSize int
	requests  int     // 0: no limit
	duration  float64 // seconds; 0: no limit
	seed      uint64
	declares  bool // rows report the shared part of their prompt
	common    *shared
	sources   []source
	clients   []*client // of all sources, in their order
	sharedIDs uint64    // number of block ids of shared prefixes, which have the lowest ids
}

// source is an arrival process and the clients that share it.
type source struct {
	name     string // key of its random numbers
	arrivals *arrivals
	clients  []*client
}

// BlockSize returns the number of tokens per block.
func (s *Spec) BlockSize() int { return s.blockSize }

// Parse reads a spec. Errors include the line and column, or the setting, of
// contradictory or impossible values.
func Parse(text []byte, o Options) (_ *Spec, err error) {
	root, err := yaml.Parse(text, cmp.Or(o.Name, "spec"))
	if err != nil {
		return nil, err
	}
	defer synth.Catch(&err)
	r := &reader{options: o, blockSize: block.DefaultSize}
	for _, s := range o.Settings {
		r.override(root, s)
	}
	return r.spec(root), nil
}

// override applies a setting to the text.
func (r *reader) override(root *yaml.Node, s Setting) {
	top, _, _ := strings.Cut(s.Key, ".")
	if clients := root.At("clients"); clients != nil {
		for _, c := range clients.Items {
			if own := c.At(top); own != nil {
				r.fail(s.From, "%s is also set by the client at %s; a setting must apply to all clients", top, own.Place)
			}
		}
	}
	at, path := root, strings.Split(s.Key, ".")
	for _, key := range path[:len(path)-1] {
		inner := at.At(key)
		switch {
		case inner == nil:
			inner = &yaml.Node{Place: s.From, Kind: yaml.Mapping}
		case inner.Kind == yaml.Scalar && key == "arrival":
			inner = inner.AsMapping("process")
		case inner.Kind != yaml.Mapping:
			r.fail(s.From, "%s is %v at %s: its keys cannot be set", key, inner.Kind, inner.Place)
		}
		at.Set(key, inner)
		at = inner
	}
	at.Set(path[len(path)-1], &yaml.Node{Place: s.From, Text: s.Value})
}

func (r *reader) spec(root *yaml.Node) *Spec {
	f := r.fields(root, "")
	s := &Spec{
		requests:  f.whole("num_requests", 0, span{1, 1e12}),
		duration:  f.seconds("duration", 0, span{1e-6, 100 * year}),
		blockSize: f.whole("block_size", cmp.Or(r.options.BlockSize, block.DefaultSize), span{1, trace.MaxLength}),
		seed:      f.seed(),
	}
	r.blockSize = s.blockSize
	if n := root.At("shared"); n != nil {
		s.common = r.shared(n)
	}
	if root.At("clients") == nil {
		c := r.client(root, "", s.common)
		s.sources = []source{{"arrivals", r.arrivals(root.At("arrival"), root.At("rate")), []*client{c}}}
	} else {
		r.sources(s, root)
	}
	for _, source := range s.sources {
		s.clients = append(s.clients, source.clients...)
	}
	for _, c := range s.clients {
		s.declares = s.declares || c.shared != nil || c.sessions.several
	}
	if !f.has("block_size") {
		s.blockSize = s.fittingBlockSize(s.blockSize)
	}
	s.drawPrefixes()
	s.setMeanTurns()
	s.setLimit(f)
	return s
}

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

// setLimit sets the limit of a spec without one.
func (s *Spec) setLimit(f fields) {
	if s.requests == 0 && s.duration == 0 {
		for _, source := range s.sources {
			if p, ok := source.arrivals.rate.(*phases); ok {
				s.duration = max(s.duration, p.length)
			}
		}
		if s.duration == 0 {
			s.requests = DefaultRequests
		}
	}
	goesOn := func(source source) bool { return !source.arrivals.endsAtZero() }
	if s.duration == 0 && !slices.ContainsFunc(s.sources, goesOn) {
		f.fail(f.place("num_requests"), "num_requests may never be reached because the rate ends at 0: set a duration, or end above 0")
	}
}

// nameLetters are the characters of a client's name.
const nameLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

// sources reads the list of clients. Clients with a share divide one arrival
// process; each of the others has a separate one.
func (r *reader) sources(s *Spec, root *yaml.Node) {
	n := root.At("clients")
	if n.Kind != yaml.List || len(n.Items) == 0 || len(n.Items) > 1000 {
		r.fail(n.Place, "clients is not a list of 1 to 1000 clients")
	}
	mixed := source{name: "arrivals"}
	var shares []float64
	names := map[string]bool{}
	for i, item := range n.Items {
		f := r.fields(item, "clients")
		name := f.clientName(i, names)
		own := f.has("rate") || f.has("arrival")
		common := s.common
		if f.has("shared") {
			common = nil
		}
		share := 1.0
		if !own {
			if !f.has("share") && len(n.Items) > 1 {
				f.fail(item.Place, "a client needs a share or its own rate")
			}
			share = f.number("share", 1, span{1e-6, 1})
		}
		if f.onlyOne("share", "rate"); f.has("share") && f.has("arrival") {
			f.fail(f.place("arrival"), "a client with a share uses the top-level arrival and cannot have its own")
		}
		c := r.client(inherit(item, root), name, common)
		if own {
			process := item.At("arrival")
			if process == nil {
				process = root.At("arrival")
			}
			s.sources = append(s.sources, source{"arrivals of " + name, r.arrivals(process, item.At("rate")), []*client{c}})
			continue
		}
		c.share = share
		shares = append(shares, share)
		mixed.clients = append(mixed.clients, c)
	}
	switch {
	case len(mixed.clients) > 0:
		r.checkShares(n.Place, "clients", shares)
		mixed.arrivals = r.arrivals(root.At("arrival"), root.At("rate"))
		s.sources = slices.Insert(s.sources, 0, mixed)
	case root.At("rate") != nil:
		r.fail(root.At("rate").Place, "this rate is unused: every client has its own arrivals")
	}
}

func (f fields) clientName(i int, taken map[string]bool) string {
	name := f.text("name")
	if !f.has("name") {
		name = fmt.Sprintf("client%d", i+1)
	}
	switch {
	case len(name) < 1 || len(name) > 40 || strings.Trim(name, nameLetters) != "":
		f.fail(f.place("name"), "name must be 1 to 40 letters, digits or _.-: %s", quote(name))
	case taken[name]:
		f.fail(f.place("name"), "two clients have the name %s", quote(name))
	}
	taken[name] = true
	return name
}

// inherit returns a client with the top-level values that it does not set.
func inherit(client, root *yaml.Node) *yaml.Node {
	whole := &yaml.Node{Place: client.Place, Kind: yaml.Mapping, Entries: slices.Clone(client.Entries)}
	prompt := client.At("isl") != nil || client.At("unique_isl") != nil
	for _, e := range root.Entries {
		switch {
		case !slices.Contains(clientKeys, e.Key) || client.At(e.Key) != nil:
		case e.Key == "shared": // one tree for all
		case prompt && (e.Key == "isl" || e.Key == "unique_isl"):
		default:
			whole.Entries = append(whole.Entries, e)
		}
	}
	return whole
}

// sessionScale returns the ratio of sessions to requests of a source, whose
// rate counts requests, and the cumulative shares of the clients in the
// sessions.
func (s source) sessionScale() (scale float64, cumulative []float64) {
	for _, c := range s.clients {
		scale += c.share / c.sessions.meanTurns
	}
	var sum float64
	for _, c := range s.clients {
		sum += c.share / c.sessions.meanTurns / scale
		cumulative = append(cumulative, sum)
	}
	cumulative[len(cumulative)-1] = math.Inf(1)
	return scale, cumulative
}
