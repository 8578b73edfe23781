package sessions

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"moontide/trace"
	"moontide/trace/stats"
)

// drawnAgent is a main agent or a sub-agent.
type drawnAgent struct {
	name   string // of its session
	level  int
	family *family
	rows   int    // drawn so far
	latest string // id of the last of these
	open   int    // turns that are planned or wait

	ends    []string // ids of the turns that no turn follows
	end     float64  // when the last of these is answered
	waiting []*plannedTurn
	started []startedAgent // that a turn of this agent, or what waits for it, will wait for
}

// startedAgent is a sub-agent that an agent's turn with a number, or one after it,
// waits for. With joinedByCaller, what waits for the agent waits for the sub-agent.
type startedAgent struct {
	*drawnAgent
	turn int
}

// family is what the agents of one session have in common.
type family struct {
	name   string
	agents int     // sub-agents started
	first  []*turn // first turns of the latest sub-agents
}

// id returns the id of a turn of an agent.
func (t *turn) id() string { return t.agent.name + ":" + strconv.Itoa(t.place) }

// answered returns when a turn of an agent is answered.
func (t *turn) answered() float64 { return t.at + trace.AnswerTime(t.osl) }

// agentSampler draws sub-agents.
type agentSampler struct {
	*agentsFile
	calls      *choiceSampler
	number     *jointSampler
	starts     *jointSampler
	templated  *choiceSampler
	popularity stats.Discrete[int]
	choices    *rand.Rand
	first      [2]*jointSampler
	shared     *jointSampler
}

func newAgentSampler(a *agentsFile, stream func(aspect string) *rand.Rand) *agentSampler {
	if a == nil {
		return nil
	}
	random := stream("sub-agents")
	calls, agents := math.Inf(1), math.Inf(1) // of the source, if these are few
	if n := a.Calls.happen(0); n < minRequests && len(a.Number) > 0 {
		calls, agents = math.Ceil(n), math.Ceil(n*a.Number[0].mean())
	}
	joint := func(j joint, most float64) *jointSampler { return newJointSampler(j, random, most) }
	s := &agentSampler{
		agentsFile: a, calls: newChoiceSampler(&a.Calls, random), number: joint(a.Number, calls),
		starts: joint(a.Starts, agents), templated: newChoiceSampler(&a.Templated, random), choices: random,
		first:  [2]*jointSampler{joint(a.FirstTurn, agents), joint(a.FirstTurnTemplated, agents)},
		shared: joint(a.FirstTurnShared, agents),
	}
	for _, t := range a.Templates {
		s.popularity.Add(t[0], t[1])
	}
	return s
}

// enter makes a turn the next one of its agent; without an agent, of a new main agent.
// It does nothing if rows do not name others.
func (d *clientDrawing) enter(t *turn) {
	if !d.file.Agents {
		return
	}
	if t.agent == nil {
		name := "s" + strconv.FormatUint(t.session, 10)
		t.agent = &drawnAgent{name: name, family: &family{name: name}}
	}
	t.place = t.agent.rows
	t.level = t.agent.level
	t.agent.rows++
}

// waitsFor returns what the row of a turn names as what it waits for, given the ids of
// the turns that it waits for.
func (d *clientDrawing) waitsFor(t *turn, after []string) []string {
	a := t.agent
	if a == nil {
		return nil
	}
	if d.file.SessionIDs && len(after) == 1 && after[0] == a.latest {
		after = nil
	}
	a.latest = t.id()
	return after
}

// proceed plans what follows a turn that was drawn: sub-agents and later turns.
func (d *clientDrawing) proceed(t *turn) {
	if d.agents != nil && t.level < d.agents.Levels {
		d.callAgents(t)
	}
	d.plan(t, 0, 0, t.at)
}

// follow plans a turn that follows another, after the sub-agents that it waits for.
func (d *clientDrawing) follow(t *turn, p plannedTurn) {
	a := t.agent
	a.open++
	p.after, p.ready = []string{t.id()}, t.answered()
	var waits []*drawnAgent
	if !t.followed {
		t.followed = true
		a.started = slices.DeleteFunc(a.started, func(s startedAgent) bool {
			due := s.turn >= 0 && s.turn <= t.place+1
			if due {
				waits = append(waits, s.drawnAgent)
			}
			return due
		})
	}
	p.ready = max(p.ready, p.since-p.wait)
	d.await(&p, waits)
}

// await plans a turn that waits for agents, as soon as they have ended.
func (d *clientDrawing) await(p *plannedTurn, agents []*drawnAgent) {
	for _, a := range agents {
		if a.open > 0 {
			a.waiting = append(a.waiting, p)
			p.left++
			continue
		}
		p.join(a)
	}
	if p.left == 0 {
		d.planned.Push(p.ready+p.wait, *p)
		return
	}
	d.parked++
}

// full reports whether no more turns can be planned.
func (d *clientDrawing) full() bool {
	return d.planned.Len()+d.joining.Len()+d.parked >= maxPlanned
}

// join notes that an agent has ended for which a turn waits. The turn then also waits
// for what that agent left to its caller.
func (p *plannedTurn) join(a *drawnAgent) {
	p.after = append(p.after, a.ends...)
	p.ready = max(p.ready, a.end)
	for _, s := range a.started {
		switch {
		case s.turn != joinedByCaller:
		case s.open > 0:
			s.waiting = append(s.waiting, p)
			p.left++
		default:
			p.join(s.drawnAgent)
		}
	}
}

// end makes a turn that no turn follows one of the last turns of its agent.
func (t *turn) end() {
	if a := t.agent; a != nil && !t.followed {
		a.ends = append(a.ends, t.id())
		a.end = max(a.end, t.answered())
	}
}

// close notes that a planned turn of an agent was drawn, and plans what waits for the
// agent if that was the last one.
func (d *clientDrawing) close(t *turn, p *plannedTurn) {
	a := t.agent
	if a == nil || p.relation == joins {
		return
	}
	if a.open--; a.open > 0 {
		return
	}
	for _, p := range a.waiting {
		p.left--
		if p.join(a); p.left == 0 {
			d.parked--
			d.planned.Push(p.ready+p.wait, *p)
		}
	}
	a.waiting = nil
}

// callAgents draws the sub-agents that a turn starts.
func (d *clientDrawing) callAgents(t *turn) {
	s := d.agents
	known := d.callContext(t)
	if s.calls.draw(known[:]...) == none || len(s.Number) == 0 || len(s.Starts) == 0 {
		return
	}
	n := int(math.Round(s.number.draw(known[:]...)[0]))
	var started []*drawnAgent
	previous := &agentStart{}
	delay := 0.0
	for i := range max(1, n) {
		if d.full() {
			break
		}
		t.calls++
		start := &agentStart{level: t.level, number: i, calls: n}
		if i > 0 {
			start.previous = previous
		}
		start.set(s.starts.draw(start.context()...))
		if start.last || previous.last {
			delay = 0
		}
		delay += start.delay
		a := d.newAgent(t.agent)
		if start.joined != neverJoined {
			turn := joinedByCaller
			if start.joined > 0 {
				turn = t.place + start.joined
			}
			t.agent.started = append(t.agent.started, startedAgent{a, turn})
		}
		p := &plannedTurn{from: t, starts: a, start: start, kind: delayKinds[start.kind], wait: delay, ready: t.answered()}
		if start.last && i > 0 {
			d.await(p, started)
		} else {
			p.after = []string{t.id()}
			d.await(p, nil)
		}
		started = append(started, a)
		previous = start
	}
}

// set sets the drawn values.
func (s *agentStart) set(v []float64) {
	s.joined = int(math.Round(v[0]))
	s.last = whole(v[1], 2) > 0
	s.kind = whole(v[2], len(delayKinds))
	s.delay = max(0, v[3])
	s.origin = origin(whole(v[4], int(origins)))
	s.back = int(math.Round(v[5]))
	s.kept = min(max(0, v[6]), 1)
}

// whole returns the whole number from 0 to below n that is nearest to x.
func whole(x float64, n int) int { return int(min(max(0, math.Round(x)), float64(n-1))) }

func (d *clientDrawing) newAgent(of *drawnAgent) *drawnAgent {
	of.family.agents++
	return &drawnAgent{
		name: of.family.name + "/" + strconv.Itoa(of.family.agents), level: of.level + 1, family: of.family, open: 1,
	}
}

// firstOfAgent draws the first turn of a sub-agent.
func (d *clientDrawing) firstOfAgent(p *plannedTurn, now float64) drawnTurn {
	s, start := d.agents, p.start
	t := &turn{session: p.from.session, at: now, phase: d.phase(now), agent: p.starts}
	d.enter(t)
	if from, shared := d.originOf(p); shared > 0 && len(s.FirstTurnShared) > 0 {
		t.shared = shared
		t.template, t.runs = d.keep(from, shared)
		context := shared * d.size.Tokens
		v := s.shared.draw(sharedContext(t.level, start.origin, context)...)
		t.isl, t.osl = max(d.clipISL(float64(context)+v[0]), context), d.clipOSL(v[1])
	} else {
		t.template = d.templateOfAgent(t.level)
		t.shared = d.templates[t.template].depth
		i := indicator(t.template > 0)
		if len(s.first[i].joint) == 0 {
			i = 1 - i
		}
		v := s.first[i].draw(d.agentContext(t.level, t.template)...)
		tokens := d.tokensOf(t.template)
		t.isl, t.osl = max(d.clipISL(float64(tokens)+v[0]), tokens), d.clipOSL(v[1])
		if d.templates[t.template].tail > 0 {
			t.isl = tokens
		}
	}
	t.blocks = d.blocksOf(t.isl)
	if t.blocks > t.shared {
		t.runs = append(t.runs, d.all.newRun(t.blocks-t.shared))
	}
	f := t.agent.family
	if f.first = append(f.first, t); len(f.first) > maxBack {
		f.first = slices.Delete(f.first, 0, 1)
	}
	d.drawn++
	after := d.waitsFor(t, p.after)
	d.proceed(t)
	d.close(t, p)
	return drawnTurn{turn: t, after: after}
}

// originOf returns the turn whose prompt a sub-agent's first prompt begins like, and the
// number of blocks that they share.
func (d *clientDrawing) originOf(p *plannedTurn) (from *turn, shared int) {
	from = p.from
	if p.start.origin != callerPrefix {
		f := p.starts.family.first
		if p.start.back < 1 || p.start.back > len(f) {
			return nil, 0
		}
		from = f[len(f)-p.start.back]
	}
	full := min(d.fullBlocks(from.isl), from.blocks)
	switch p.start.origin {
	case ownPrefix:
		return nil, 0
	case samePrefix:
		return from, min(from.shared, full)
	}
	depth := min(d.templates[from.template].depth, full)
	return from, depth + int(math.Round(p.start.kept*float64(full-depth)))
}

func (d *clientDrawing) templateOfAgent(level int) int {
	s := d.agents
	if s.popularity.Total() == 0 || s.templated.draw(float64(min(level, 3))) == none {
		return 0
	}
	return s.popularity.At(s.choices.Float64())
}

// delayedTurn draws a planned turn that has a delay.
func (d *clientDrawing) delayedTurn(p *plannedTurn, now float64) (t drawnTurn) {
	if p.starts != nil {
		t = d.firstOfAgent(p, now)
	} else {
		t = d.laterTurn(p, now)
	}
	t.delay, t.kind = trace.Some(microseconds(p.wait)), p.kind
	return t
}
