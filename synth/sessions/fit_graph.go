package sessions

import "slices"

// agentRow is what a row is to its agent.
type agentRow struct {
	waits   []int32 // rows that it waits for; nil: the previous one of its session
	named   bool    // the row has a session id
	agentOf int32   // number of its agent
	start   *agentStart
}

// agent is a main agent or a sub-agent of the source: rows that continue each other.
type agent struct {
	caller int32 // the row that started it, or none
	main   int32 // number of the main agent
	level  int   // 0 for a main agent, 1 for its sub-agents, and so on
	rows   int
	joined int // see agentStart
	first  int32
}

// agentStart describes how a sub-agent starts.
type agentStart struct {
	level         int // of the caller
	number, calls int // of the sub-agents that the caller starts: those before this one, and all
	previous      *agentStart

	// joined is the number of turns after the call until one waits for this
	// sub-agent, neverJoined, or joinedByCaller.
	joined int
	open   bool    // no turn comes after the call, so which would wait is not known
	last   bool    // waits for all sub-agents that the caller started before it
	kind   int     // of the delay
	delay  float64 // ms after the answer to the caller, or after the end of those sub-agents
	origin origin
	back   int     // with parts of sub-agents: 1 for the latest one of the main agent, 2 for the one before
	kept   float64 // share of the blocks
}

const (
	neverJoined = 0
	// joinedByCaller means that what waits for the sub-agent that started this one
	// also waits for this one.
	joinedByCaller = -1
	// maxJoined is the largest number of turns until a sub-agent is joined.
	maxJoined = 1024
	// maxBack is the number of earlier sub-agents that another one's prompt is
	// compared with.
	maxBack = 16
	// maxAncestors is the number of rows that a row without a session id is compared
	// with to find the one that it continues.
	maxAncestors = 256
	// The largest level of a sub-agent, and the most that a row starts, that are kept.
	maxLevels, maxCalls = 64, 1024
)

// origin is what a sub-agent's first prompt begins with.
type origin int

const (
	ownPrefix    origin = iota // a template, or nothing known
	callerPrefix               // a part of its caller's prompt
	agentPrefix                // a part of an earlier sub-agent's first prompt
	samePrefix                 // the part that that one began with
	origins
)

// findAgents divides the sorted rows into agents, if any row names others.
func (f *fitter) findAgents() {
	if !f.file.Agents {
		return
	}
	for i := range f.rows {
		r := &f.rows[i]
		r.waits = slices.DeleteFunc(r.waits, func(w int32) bool { return int(w) >= i })
		if r.before = f.agentBefore(r); r.before == none {
			f.startAgent(int32(i))
			continue
		}
		r.agentOf = f.rows[r.before].agentOf
		a := &f.agents[r.agentOf]
		r.place = a.rows
		r.level = a.level
		a.rows++
		for _, w := range r.waits {
			f.join(r, w)
		}
	}
}

func (f *fitter) startAgent(i int32) {
	r := &f.rows[i]
	a := agent{caller: none, rows: 1, first: i, main: int32(len(f.agents))}
	if len(r.waits) > 0 {
		var last bool
		a.caller, last = f.callerOf(r.waits)
		caller := &f.rows[a.caller]
		above := &f.agents[caller.agentOf]
		a.level, a.main = above.level+1, above.main
		r.start = &agentStart{level: above.level, number: caller.calls, last: last, kind: r.kind, delay: f.delayOf(r)}
		caller.calls++
	}
	r.agentOf, r.level = int32(len(f.agents)), a.level
	f.agents = append(f.agents, a)
}

// delayOf returns the ms from the end of the rows that a row waits for.
func (f *fitter) delayOf(r *row) float64 {
	if r.untimed || r.follows == none {
		return r.delay
	}
	return max(0, r.at-f.answered(r.follows))
}

// agentBefore returns the row of the same agent that a row continues, or none.
func (f *fitter) agentBefore(r *row) int32 {
	switch {
	case r.before != none:
		own := none
		for _, w := range r.waits {
			if f.rows[w].agentOf == f.rows[r.before].agentOf {
				own = max(own, int(w))
			}
		}
		if own == none {
			return r.before // not waiting for it is not modelled
		}
		return int32(own)
	case r.named || len(r.waits) == 0:
		return none
	case !f.hasBlocks:
		if caller, last := f.callerOf(r.waits); last || f.agents[f.rows[caller].agentOf].rows == f.rows[caller].place+1 {
			return caller
		}
		return none
	}
	return f.extended(r)
}

// extended returns the row with the longest prompt that a row extends, among those
// that it waits for directly or not; or none.
func (f *fitter) extended(r *row) int32 {
	longest, blocks := int32(none), 0
	seen := map[int32]bool{}
	left := slices.Clone(r.waits)
	for len(left) > 0 && len(seen) < maxAncestors {
		w := left[0]
		left = left[1:]
		if seen[w] {
			continue
		}
		seen[w] = true
		before := &f.rows[w]
		left = append(left, before.waits...)
		full := min(before.isl/f.size.Tokens, f.prompts.Depth(before.end))
		if full > 0 && full >= blocks && f.commonBlocks(r.end, before.end) >= full {
			if full > blocks || w > longest {
				longest, blocks = w, full
			}
		}
	}
	return longest
}

// callerOf returns the row that starts a sub-agent whose first row waits for others:
// one of those or, if they are all of sub-agents, the row that started these: last is
// then set.
func (f *fitter) callerOf(waits []int32) (caller int32, last bool) {
	caller = waits[0]
	for _, w := range waits[1:] {
		a, b := caller, w
		for a != none && b != none && f.rows[a].agentOf != f.rows[b].agentOf {
			of, other := &f.agents[f.rows[a].agentOf], &f.agents[f.rows[b].agentOf]
			if of.level >= other.level {
				a = of.caller
			}
			if other.level >= of.level {
				b = other.caller
			}
		}
		if a == none || b == none { // of other sessions
			return slices.Max(waits), false
		}
		caller = max(a, b)
	}
	return caller, !slices.Contains(waits, caller)
}

// join notes that a row waits for one of a sub-agent, if that was started by an earlier
// row of the same agent.
func (f *fitter) join(r *row, waits int32) {
	var inner []int32
	for at := f.rows[waits].agentOf; at != r.agentOf; {
		a := &f.agents[at]
		if a.caller == none {
			return
		}
		if caller := &f.rows[a.caller]; caller.agentOf == r.agentOf {
			if a.joined == neverJoined {
				a.joined = min(r.place-caller.place, maxJoined)
			}
			break
		}
		inner = append(inner, at)
		at = f.rows[a.caller].agentOf
	}
	for _, i := range inner {
		if a := &f.agents[i]; a.joined == neverJoined {
			a.joined = joinedByCaller
		}
	}
}

// describeStarts completes what is known of the starts of sub-agents, once templates
// are.
func (f *fitter) describeStarts() {
	recent := map[int32][]*row{} // first rows of the sub-agents of each main agent
	latest := map[int32]*agentStart{}
	for i := range f.agents {
		a := &f.agents[i]
		if a.caller == none {
			continue
		}
		r := &f.rows[a.first]
		s := r.start
		caller := &f.rows[a.caller]
		s.calls, s.joined = caller.calls, a.joined
		s.open = s.joined == neverJoined && caller.place+1 == f.agents[caller.agentOf].rows
		if s.number > 0 {
			s.previous = latest[a.caller]
		}
		latest[a.caller] = s
		f.findOrigin(r, caller, recent[a.main])
		recent[a.main] = append(recent[a.main], r)
		if n := len(recent[a.main]); n > maxBack {
			recent[a.main] = recent[a.main][n-maxBack:]
		}
	}
}

// findOrigin finds which earlier prompt shares the most with a sub-agent's first one.
func (f *fitter) findOrigin(r, caller *row, recent []*row) {
	s := r.start
	from := caller
	if common := f.commonBlocks(r.end, caller.end); common > r.shared {
		s.origin, r.shared = callerPrefix, common
	}
	for back := range recent {
		other := recent[len(recent)-1-back]
		if common := f.commonBlocks(r.end, other.end); common > r.shared {
			s.origin, s.back, r.shared, from = agentPrefix, back+1, common, other
		}
	}
	if s.origin == agentPrefix && from.shared == r.shared && from.start.origin != ownPrefix {
		s.origin = samePrefix
		return
	}
	depth := f.templates[from.template].depth
	if own := f.fullBlocks(from.isl) - depth; s.origin != ownPrefix && own > 0 {
		s.kept = rounded(min(max(0, float64(r.shared-depth)/float64(own)), 1), 4)
	}
}
