package sessions

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"moontide/synth"
)

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
	a.Starts = fitJoint(samples, callKnown, betweenKinds(callKnown+2)...)
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
	return c.turnContext(&before, 0, 0)
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
