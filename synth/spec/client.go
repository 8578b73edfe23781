package spec

import (
	"math"

	"moontide/trace"
	"moontide/trace/stats"
)

const (
	// maxBlocks bounds the ids of a row.
	maxBlocks = 1 << 22
	maxTurns  = 10_000
)

// client is a kind of traffic.
type client struct {
	name        string
	share       float64            // of the requests of its source
	isl, osl    stats.Distribution // nil where pairs are given
	unique      bool               // isl counts only what is behind the shared prefix
	correlation float64
	pairs       []pair
	longest     int     // first prompt that can be drawn
	shared      *shared // nil where nothing is
	prefixes    *prefixes
	sessions    sessions
}

// sessions say how a conversation goes on after its first prompt.
type sessions struct {
	turns     stats.Distribution
	several   bool               // there can be more than one
	meanTurns float64            // of those that happen: maxISL ends sessions early
	think     stats.Distribution // seconds
	grows     stats.Distribution // new tokens a turn; nil: like the first prompt's own
	maxISL    int
	open      bool    // later turns have timestamps instead of delays
	ttft      float64 // of the assumed answers, in seconds
	tpot      float64
}

// mostTurns is the number of turns of the longest sessions that the law allows.
func (s sessions) mostTurns() int { return min(int(stats.Highest(s.turns)), maxTurns) }

// answer is the assumed time of an answer in seconds.
func (s sessions) answer(osl int) float64 { return s.ttft + s.tpot*float64(max(osl-1, 0)) }

// clientKeys are what a client may have, in the description of one or, as
// what holds for all of them, at its top.
var clientKeys = []string{"isl", "unique_isl", "osl", "correlation", "lengths", "shared", "sessions"}

// tokens is a number of prompt or answer tokens.
func (r *reading) tokens(min float64) quantity {
	most := float64(trace.MaxLength)
	if r.block <= trace.MaxLength/maxBlocks {
		most = float64(r.block * maxBlocks)
	}
	return quantity{allowed: span{min, most}, min: min, whole: true}
}

// client reads what makes up the traffic of one client. common are the shared
// prefixes of the top, where it has none of its own.
func (r *reading) client(n *node, name string, common *shared) *client {
	f := fields{r, "", n}
	c := &client{name: name, share: 1, shared: common}
	if s := n.at("shared"); s != nil && common == nil {
		c.shared = r.shared(s)
	}
	if c.shared != nil && len(c.shared.levels) == 0 {
		c.shared = nil
	}
	shortest, longest := c.lengths(f)
	c.sessions = r.sessions(n.at("sessions"))
	if !r.failed() {
		c.fits(f, shortest, longest)
	}
	return c
}

// fits refuses shared prefixes that do not fit into prompts, and prompts that do
// not fit into the context.
func (c *client) fits(f fields, shortest, longest int) {
	key := "isl"
	switch {
	case c.pairs != nil:
		key = "lengths"
	case c.unique:
		key = "unique_isl"
	}
	prefix := 0
	if c.shared != nil {
		prefix = c.shared.most
	}
	if c.unique {
		shortest, longest = shortest+prefix, longest+prefix
	}
	if prefix > shortest {
		f.fail(f.place(key), "%s is the whole prompt and can be as short as %d tokens, less than the %d of a shared prefix: want a min of at least that, or unique_isl", key, shortest, prefix)
	}
	c.longest = longest
	if most := int(f.tokens(1).allowed.high); longest > most {
		f.fail(f.place(key), "a prompt can have %d tokens, %d of them shared: the most is %d", longest, prefix, most)
	}
	if n := f.node.at("sessions"); n != nil && longest > c.sessions.maxISL {
		f.fail(fields{f.reading, "", n}.place("max_isl"), "sessions.max_isl is %d, less than the %d tokens that a first prompt can have: want a max of %s", c.sessions.maxISL, longest, key)
	}
}

// lengths reads the laws of ISL and OSL and returns the shortest and the longest
// prompt.
func (c *client) lengths(f fields) (shortest, longest int) {
	f.onlyOne("isl", "unique_isl")
	f.onlyOne("isl", "lengths")
	f.onlyOne("unique_isl", "lengths")
	f.onlyOne("osl", "lengths")
	f.onlyOne("correlation", "lengths")
	if n := f.node.at("lengths"); n != nil {
		c.pairs = f.joint(n)
		shortest = math.MaxInt
		for _, p := range c.pairs {
			shortest, longest = min(shortest, int(p.isl)), max(longest, int(p.isl))
		}
		return shortest, longest
	}
	isl, osl := f.tokens(1), f.tokens(1)
	isl.column, osl.column = islColumn, oslColumn
	key := "isl"
	if c.unique = f.has("unique_isl"); c.unique {
		key = "unique_isl"
	}
	c.isl, c.osl = f.law(key, isl), f.law("osl", osl)
	c.correlation = f.number("correlation", 0, span{-1, 1})
	if f.failed() {
		return 0, 0
	}
	if c.correlation != 0 && (stats.Lowest(c.isl) == stats.Highest(c.isl) || stats.Lowest(c.osl) == stats.Highest(c.osl)) {
		f.fail(f.place("correlation"), "correlation needs an isl and an osl that vary")
	}
	return int(stats.Lowest(c.isl)), int(stats.Highest(c.isl))
}

// joint reads the lengths of a trace's rows, ISL and OSL together.
func (f fields) joint(n *node) []pair {
	if n.kind == scalar {
		n = n.inFull("file")
	}
	l := f.reading.fields(n, "lengths", "file", "min_isl", "max_isl", "min_osl", "max_osl")
	bounds := func(name string) (low, high int32) {
		all := f.tokens(1).allowed
		low, high = int32(l.whole("min_"+name, 1, all)), int32(l.whole("max_"+name, int(all.high), all))
		if low > high {
			l.fail(l.place("min_"+name), "lengths has min_%s %d above max_%s %d", name, low, name, high)
		}
		return low, high
	}
	minISL, maxISL := bounds("isl")
	minOSL, maxOSL := bounds("osl")
	return l.pairs("file", func(p pair) bool {
		return p.isl >= minISL && p.isl <= maxISL && p.osl >= minOSL && p.osl <= maxOSL
	})
}

// sessions reads how sessions go on; without a description they have one turn.
func (r *reading) sessions(n *node) sessions {
	longest := int(r.tokens(1).allowed.high)
	s := sessions{turns: stats.Fixed(1), meanTurns: 1, think: stats.Fixed(0), maxISL: longest, ttft: 0.5, tpot: 0.02}
	if n == nil {
		return s
	}
	f := r.fields(n, "sessions", "turns", "think_time", "new_tokens", "max_isl", "timestamps", "ttft", "tpot")
	s.turns = f.law("turns", quantity{allowed: span{1, maxTurns}, min: 1, whole: true})
	if f.has("think_time") {
		s.think = f.law("think_time", quantity{allowed: span{0, year}, time: true})
	}
	if f.has("new_tokens") {
		s.grows = f.law("new_tokens", r.tokens(0))
	}
	s.maxISL = f.whole("max_isl", longest, r.tokens(1).allowed)
	s.open = f.choice("timestamps", "first", "first", "all") == "all"
	s.ttft = f.seconds("ttft", s.ttft, span{0, year})
	s.tpot = f.seconds("tpot", s.tpot, span{0, year})
	if !r.failed() {
		s.several = stats.IntegerMean(s.turns, 1, s.mostTurns()) > 1
	}
	return s
}

// pairAt is the pair that a uniform number stands for.
func (c *client) pairAt(p float64) pair {
	return c.pairs[min(int(p*float64(len(c.pairs))), len(c.pairs)-1)]
}

// draw returns the new tokens of a prompt and the tokens of its answer: behind a
// shared prefix of so many tokens in a first prompt, behind all that was said
// before in a later one. p and q are independent uniform numbers.
func (c *client) draw(first bool, prefix int, p, q float64) (fresh, osl int) {
	if c.pairs != nil {
		lengths := c.pairAt(p)
		fresh, osl = int(lengths.isl)-prefix, int(lengths.osl)
	} else {
		osl = int(c.osl.Quantile(stats.Correlate(p, q, c.correlation)))
	}
	switch {
	case !first && c.sessions.grows != nil:
		fresh = int(c.sessions.grows.Quantile(p))
	case c.unique:
		fresh = int(c.isl.Quantile(p))
	case c.pairs == nil:
		fresh = int(c.isl.Quantile(p)) - prefix
	}
	return fresh, osl
}
