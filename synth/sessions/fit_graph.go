package sessions

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"moontide/synth"
	"moontide/trace"
)

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

// agentsFile is the part of a model's file on sub-agents. The package comment describes
// its members.
type agentsFile struct {
	Levels             int      `json:"levels"`
	Calls              choice   `json:"calls"`
	Number             joint    `json:"number"`
	Starts             joint    `json:"starts"`
	Templates          [][2]int `json:"templates"`
	Templated          choice   `json:"starts_with_template"`
	FirstTurn          joint    `json:"first_turn"`
	FirstTurnTemplated joint    `json:"first_turn_templated"`
	FirstTurnShared    joint    `json:"first_turn_shared"`
}

func (a *agentsFile) joints() []joint {
	if a == nil {
		return nil
	}
	return []joint{a.Number, a.Starts, a.FirstTurn, a.FirstTurnTemplated, a.FirstTurnShared}
}

// fitAgents learns when sub-agents are started, and how they begin. How they go on is
// learned with all other turns.
func (f *clientFitter) fitAgents() {
	var starts []*row
	calls := 0
	levels := 0
	for i := range f.rows {
		r := &f.rows[i]
		if r.calls > 0 {
			calls++
		}
		if r.start != nil {
			starts = append(starts, r)
			levels = min(max(levels, r.level), maxLevels)
		}
	}
	if len(starts) == 0 {
		return
	}
	if calls < minRequests || len(starts) < minRequests {
		f.fitFewAgents(starts, calls)
		return
	}
	a := &agentsFile{Levels: levels}
	f.SubAgents = a
	f.fitCalls(a)
	samples := startSamples(starts, func(s *agentStart) bool { return !s.open })
	if len(samples) < minRequests {
		samples = startSamples(starts, func(*agentStart) bool { return true })
	}
	a.Starts = fitJoint(samples, callKnown, callKnown+2)
	f.fitAgentLengths(a, starts)
}

func startSamples(starts []*row, use func(*agentStart) bool) (samples []sample) {
	for _, r := range starts {
		if use(r.start) {
			samples = append(samples, sample{append(r.start.context(), r.start.values()...), 1})
		}
	}
	return samples
}

func (f *clientFitter) fitCalls(a *agentsFile) {
	var whether, number []sample
	for i := range f.rows {
		known := f.callContext(&f.rows[i].turn)
		n := f.rows[i].calls
		whether = append(whether, sample{append(known[:turnKnown:turnKnown], float64(indicator(n > 0))), 1})
		if n > 0 {
			number = append(number, sample{append(known[:], float64(min(n, maxCalls))), 1})
		}
	}
	a.Calls = fitChoice(whether, turnKnown)
	a.Calls.fitShares(whether, turnKnown)
	a.Number = fitJoint(number, turnKnown)
}

// callContext is turnContext before it is known whether the turn starts sub-agents.
func (c *client) callContext(t *turn) [turnKnown]float64 {
	before := *t
	before.calls = 0
	return c.turnContext(&before, 0)
}

// callKnown is the number of values that the start of a sub-agent depends on.
const callKnown = 5

// context returns these values: the level of the caller, the number of the sub-agent
// among those of the call, how many these are, and when the one before is joined and
// what it begins with.
func (s *agentStart) context() []float64 {
	joined, from := -2, -1
	if s.previous != nil {
		joined, from = s.previous.joined, int(s.previous.origin)
	}
	return append(make([]float64, 0, callKnown+7), float64(min(s.level, 3)), float64(min(s.number, 16)), float64(min(s.calls, 64)), float64(joined), float64(from))
}

// values returns what is drawn of a start. The delay counts from the start of the
// sub-agent before, except from the end of those that this one waits for.
func (s *agentStart) values() []float64 {
	delay := s.delay
	if s.previous != nil && !s.last && !s.previous.last {
		delay = max(0, delay-s.previous.delay)
	}
	return []float64{float64(s.joined), float64(indicator(s.last)), float64(s.kind), rounded(delay, 9), float64(s.origin), float64(s.back), s.kept}
}

// fitAgentLengths learns the first prompts of sub-agents.
func (f *clientFitter) fitAgentLengths(a *agentsFile, starts []*row) {
	var own [2][]sample
	var shared, templated []sample
	sessions := make([]int, len(f.templates))
	for _, r := range starts {
		if r.start.origin != ownPrefix {
			known := sharedContext(r.level, r.start.origin, r.shared*f.size.Tokens)
			shared = append(shared, sample{append(known, float64(max(0, r.isl-r.shared*f.size.Tokens)), float64(r.osl)), 1})
			continue
		}
		has := indicator(r.template > 0)
		known := f.agentContext(r.level, r.template)
		own[has] = append(own[has], sample{append(known, float64(max(0, r.isl-f.tokensOf(r.template))), float64(r.osl)), 1})
		templated = append(templated, sample{[]float64{float64(min(r.level, 3)), float64(has)}, 1})
		sessions[r.template]++
	}
	for i, first := range []*joint{&a.FirstTurn, &a.FirstTurnTemplated} {
		if len(own[i]) >= minRequests {
			*first = fitJoint(own[i], startKnown)
		}
	}
	if len(shared) >= minRequests {
		a.FirstTurnShared = fitJoint(shared, startKnown)
	}
	if len(a.FirstTurn)+len(a.FirstTurnTemplated) == 0 {
		a.FirstTurn = f.firstTurnsOfAll(true)
	}
	for t, n := range sessions {
		if t > 0 && n >= minRequests {
			a.Templates = append(a.Templates, [2]int{t, n})
		}
	}
	if len(a.Templates) > 0 {
		a.Templated = fitChoice(templated, 1)
		a.Templated.fitShares(templated, 1)
	}
}

// agentContext returns what the first prompt of a sub-agent depends on: its level, and
// the blocks of its template, and whether that is a whole prompt.
func (s *shared) agentContext(level, template int) []float64 {
	t := &s.templates[template]
	return append(make([]float64, 0, startKnown+2), float64(min(level, 3)), float64(t.depth), float64(indicator(t.tail > 0)))
}

// sharedContext returns what it depends on if it shares tokens with an earlier prompt
// of the session.
func sharedContext(level int, from origin, tokens int) []float64 {
	return append(make([]float64, 0, startKnown+2), float64(min(level, 3)), float64(from), float64(tokens))
}

// fitFewAgents learns from fewer calls or sub-agents than a part must be derived from:
// whether and how many sub-agents are started, and which turns wait for them, are
// derived from all of their requests, and their delays and lengths from those of all
// turns.
func (f *clientFitter) fitFewAgents(starts []*row, calls int) {
	var of []sample // for each row of a sub-agent
	byAgent := map[int32]*agentStart{}
	for _, r := range starts {
		byAgent[r.agentOf] = r.start
	}
	levels := 0
	for i := range f.rows {
		r := &f.rows[i]
		if s := byAgent[r.agentOf]; s != nil {
			levels = min(max(levels, r.level), maxLevels)
			number := float64(min(s.calls, maxCalls))
			of = append(of, sample{append(append(make([]float64, turnKnown), number), s.values()...), 1 / number})
		}
	}
	if len(of) < minRequests {
		return
	}
	f.notes = append(f.notes, fmt.Sprintf("%d turns start %d sub-agents: their delays are those of all turns", calls, len(starts)))
	a := &agentsFile{Levels: levels, FirstTurn: f.firstTurnsOfAll(true)}
	f.SubAgents = a
	a.Calls = f.shareOfCalls(calls, levels)
	var number, start []sample
	delays := f.delays()
	for i, s := range of {
		number = append(number, sample{s.values[:turnKnown+1], s.weight})
		values := append(make([]float64, callKnown), s.values[turnKnown+1:]...)
		values[callKnown+3] = delays[i*len(delays)/len(of)]
		values[callKnown+4], values[callKnown+5], values[callKnown+6] = float64(ownPrefix), 0, 0
		start = append(start, sample{values, 1})
	}
	a.Number = fitJoint(number, turnKnown)
	a.Starts = fitJoint(start, callKnown)
}

// shareOfCalls returns the probability that a turn that may start sub-agents does.
func (f *clientFitter) shareOfCalls(calls, levels int) choice {
	rows := 0
	for i := range f.rows {
		rows += indicator(f.rows[i].level < levels)
	}
	if rows < minRequests {
		rows = len(f.rows)
	}
	return choice{Leaves: []shares{{float64(rows), math.Floor(float64(calls)/float64(rows)*1e6) / 1e6}}}
}

// delays returns the delays of all rows without a timestamp, sorted; zero if there are
// few.
func (f *clientFitter) delays() []float64 {
	var all []float64
	for i := range f.rows {
		if r := &f.rows[i]; r.untimed {
			all = append(all, rounded(r.delay, 9))
		}
	}
	if len(all) < minRequests {
		return []float64{0}
	}
	slices.SortFunc(all, cmp.Compare)
	return all
}

// kindOf returns the number of a kind of delay.
func kindOf(kind trace.DelayKind) int { return max(0, slices.Index(delayKinds[:], kind)) }

// check fails for the first invalid value.
func (a *agentsFile) check(templates int) {
	if a == nil {
		return
	}
	const at = "sub_agents."
	checkIn(span{1, maxLevels}, float64(a.Levels), at+"levels")
	checkChoice(at+"calls", a.Calls, turnKnown, 1)
	checkJoint(at+"number", a.Number, turnKnown, span{-16, 2 * maxCalls})
	checkJoint(at+"starts", a.Starts, callKnown, span{-16, 2 * maxJoined}, smallRange, smallRange, timeRange,
		smallRange, span{-16, 2 * maxBack}, smallRange)
	checkTemplateUse(at+"templates", a.Templates, templates)
	checkChoice(at+"starts_with_template", a.Templated, 1, 1)
	checkJoint(at+"first_turn", a.FirstTurn, startKnown, lengthRange, lengthRange)
	checkJoint(at+"first_turn_templated", a.FirstTurnTemplated, startKnown, lengthRange, lengthRange)
	checkJoint(at+"first_turn_shared", a.FirstTurnShared, startKnown, lengthRange, lengthRange)
	if len(a.FirstTurn)+len(a.FirstTurnTemplated) == 0 {
		synth.Fail(at + "first_turn: no values")
	}
}
