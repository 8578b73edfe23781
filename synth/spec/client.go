package spec

import (
	"moontide/trace"
	"moontide/trace/stats"
	"moontide/trace/yaml"
)

const (
	maxBlocks = 1 << 22 // block ids per row
	maxTurns  = 10_000
)

// client is a class of requests.
type client struct {
	name        string
	share       float64 // of the requests of its source
	isl, osl    stats.Distribution
	unique      bool // isl excludes the shared prefix
	correlation float64
	longest     int     // longest possible first prompt in tokens
	shared      *shared // nil without shared prefixes
	prefixes    *prefixes
	sessions    sessions
}

// sessions describes how a conversation continues after its first prompt.
type sessions struct {
	turns      stats.Distribution
	several    bool               // there can be more than one turn
	meanTurns  float64            // of the turns that happen: maxISL ends sessions early
	think      stats.Distribution // seconds
	newTokens  stats.Distribution // per turn; nil: as in the first prompt
	maxISL     int
	timestamps bool    // later turns have timestamps instead of delays
	ttft, tpot float64 // of the assumed responses, in seconds
}

// maxTurns returns the number of turns of the longest possible session.
func (s sessions) maxTurns() int { return min(int(stats.Highest(s.turns)), maxTurns) }

// responseTime returns the assumed time of a response in seconds.
func (s sessions) responseTime(osl int) float64 { return s.ttft + s.tpot*float64(max(osl-1, 0)) }

// tokens returns the quantity of prompt or response tokens.
func (r *reader) tokens(min float64) quantity {
	highest := float64(trace.MaxLength)
	if r.blockSize <= trace.MaxLength/maxBlocks {
		highest = float64(r.blockSize * maxBlocks)
	}
	return quantity{allowed: span{min, highest}, min: min, whole: true, in: number}
}

// client reads the traffic of one client. common is the top-level shared
// prefixes, for clients that define none.
func (r *reader) client(n *yaml.Node, name string, common *shared) *client {
	f := fields{r, "", n}
	c := &client{name: name, share: 1, shared: common}
	if s := n.At("shared"); s != nil && common == nil {
		c.shared = r.shared(s)
	}
	if c.shared != nil && len(c.shared.levels) == 0 {
		c.shared = nil
	}
	shortest, longest := c.lengths(f)
	c.sessions = r.sessions(n.At("sessions"))
	c.checkLengths(f, shortest, longest)
	return c
}

// checkLengths rejects shared prefixes longer than the prompts, and prompts
// longer than the context.
func (c *client) checkLengths(f fields, shortest, longest int) {
	key := "isl"
	if c.unique {
		key = "unique_isl"
	}
	prefix := 0
	if c.shared != nil {
		prefix = c.shared.longest
	}
	if c.unique {
		shortest, longest = shortest+prefix, longest+prefix
	}
	if prefix > shortest {
		f.fail(f.place(key), "%s includes the shared prefix but can be as short as %d tokens, less than the prefix's %d: raise min, or use unique_isl", key, shortest, prefix)
	}
	c.longest = longest
	if highest := int(f.tokens(1).allowed.high); longest > highest {
		f.fail(f.place(key), "a prompt can have %d tokens (%d of them shared), more than %d", longest, prefix, highest)
	}
	if n := f.node.At("sessions"); n != nil && longest > c.sessions.maxISL {
		f.fail(fields{f.reader, "", n}.place("max_isl"), "sessions.max_isl is %d, but a first prompt can have %d tokens: set a max for %s", c.sessions.maxISL, longest, key)
	}
}

// lengths reads ISL and OSL and returns the shortest and the longest prompt.
func (c *client) lengths(f fields) (shortest, longest int) {
	f.onlyOne("isl", "unique_isl")
	key := "isl"
	if c.unique = f.has("unique_isl"); c.unique {
		key = "unique_isl"
	}
	c.isl, c.osl = f.distribution(key, f.tokens(1)), f.distribution("osl", f.tokens(1))
	c.correlation = f.number("correlation", 0, span{-1, 1})
	if c.correlation != 0 && (stats.Lowest(c.isl) == stats.Highest(c.isl) || stats.Lowest(c.osl) == stats.Highest(c.osl)) {
		f.fail(f.place("correlation"), "correlation needs an isl and an osl that vary")
	}
	return int(stats.Lowest(c.isl)), int(stats.Highest(c.isl))
}

// sessions reads how sessions continue. The default is one turn.
func (r *reader) sessions(n *yaml.Node) sessions {
	longest := int(r.tokens(1).allowed.high)
	s := sessions{turns: stats.Fixed(1), meanTurns: 1, think: stats.Fixed(0), maxISL: longest, ttft: trace.AssumedTTFT / 1000, tpot: trace.AssumedTPOT / 1000}
	if n == nil {
		return s
	}
	f := r.fields(n, "sessions")
	s.turns = f.distribution("turns", quantity{allowed: span{1, maxTurns}, min: 1, whole: true, in: number})
	if f.has("think_time") {
		s.think = f.distribution("think_time", quantity{allowed: span{0, year}, in: seconds})
	}
	if f.has("new_tokens") {
		s.newTokens = f.distribution("new_tokens", r.tokens(0))
	}
	s.maxISL = f.whole("max_isl", longest, r.tokens(1).allowed)
	s.timestamps = f.choice("timestamps", "first", "first", "all") == "all"
	s.ttft = f.seconds("ttft", s.ttft, span{0, year})
	s.tpot = f.seconds("tpot", s.tpot, span{0, year})
	s.several = s.maxTurns() > 1
	return s
}

// How many turns are simulated for their mean number. A higher precision would not
// be visible in a trace.
const (
	simulatedTurns    = 1 << 17 // of all clients
	minSimulated      = 1 << 10 // turns of a client
	simulatedSessions = 10_000  // of a client, at most
)

// setMeanTurns computes the mean number of turns of each client's sessions.
func (s *Spec) setMeanTurns() {
	for _, c := range s.clients {
		c.sessions.meanTurns = s.meanTurns(c, max(simulatedTurns/len(s.clients), minSimulated))
	}
}

// meanTurns returns the mean number of turns that happen. Sessions are simulated
// until max_isl ends them, because the length of a prompt is a long sum; for each,
// the expected loss under the distribution of turns is known exactly.
func (s *Spec) meanTurns(c *client, tries int) float64 {
	highest := c.sessions.maxTurns()
	upTo := make([]float64, highest+1) // mean turns if at most this many fit
	upTo[1] = 1
	for k := 1; k < highest; k++ {
		upTo[k+1] = upTo[k] + (1 - c.sessions.turns.CDF(float64(k)))
	}
	if c.longest+(highest-1)*c.maxAdded() <= c.sessions.maxISL {
		return upTo[highest]
	}
	live := s.start(c, "tried ")
	var one session
	var lost float64
	number := 0
	for turns := 0; turns < tries && number < simulatedSessions; number++ {
		one.begin(live, number)
		for one.turn = 1; one.turn < highest && one.drawNext(); one.turn++ {
		}
		lost += upTo[highest] - upTo[one.turn]
		turns += one.turn
	}
	return upTo[highest] - lost/float64(number)
}

// maxAdded returns the largest number of tokens that a turn adds to the next
// prompt.
func (c *client) maxAdded() int {
	newTokens := c.longest
	if c.sessions.newTokens != nil {
		newTokens = int(stats.Highest(c.sessions.newTokens))
	}
	return newTokens + int(stats.Highest(c.osl))
}
