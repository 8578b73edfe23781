package sessions

import (
	"math"

	"moontide/synth"
	"moontide/trace"
)

const (
	// maxPlanned limits the planned turns, to bound memory.
	maxPlanned = 1 << 20
	// latenessWindow is the number of turns over which lateness is averaged.
	latenessWindow = 64
)

// plannedTurn is a future turn.
type plannedTurn struct {
	from     *turn
	since    float64 // when it was planned
	order    int     // how often from was continued before this
	relation relation
	shared   int // blocks shared with from
	isl, osl int
	kind     trace.DelayKind
	wait     float64 // ms, not including the answer's time if the model has delays

	// With agents:
	starts *drawnAgent // the sub-agent whose first turn it is, if any
	start  *agentStart
	after  []string // ids of turns that it waits for
	ready  float64  // when the last of these is answered
	left   int      // agents for which it waits too, and which have not ended
}

// drawnTurn is a turn that is due.
type drawnTurn struct {
	*turn
	stamp  float64            // its timestamp
	extra  []byte             // unknown keys
	atOnce bool               // it comes at the time of the turn that it continues
	delay  trace.Opt[float64] // instead of a timestamp
	kind   trace.DelayKind
	after  []string // with agents: ids of turns that it waits for
}

// advance draws the next time of the clock.
func (d *clientDrawing) advance() {
	d.stamp, d.slot = d.clock.next()
	d.ahead = d.clock.course
}

// keepUp takes the clock's course. If the source begins again, its sessions have
// ended.
func (d *clientDrawing) keepUp(c course) {
	if !c.hold && c.repetition != d.course.repetition {
		d.started, d.drawn = 0, 0
		d.planned, d.joining = synth.Queue[plannedTurn]{}, synth.Queue[plannedTurn]{}
	}
	d.course = c
}

// nextTime returns the time of the next request.
func (d *clientDrawing) nextTime() float64 {
	if d.turnIsFirst() {
		at, _ := d.planned.First()
		return at
	}
	return d.slot
}

// turnIsFirst reports whether the next request is a planned turn that comes at its
// own time.
func (d *clientDrawing) turnIsFirst() bool {
	if !d.Arrivals.OfSessions || d.planned.Len() == 0 {
		return false
	}
	at, _ := d.planned.First()
	return at <= d.slot
}

// next draws a turn. If the clock starts sessions, later turns come at their own
// times. Otherwise a planned turn that is due takes the clock's next time, and a
// session starts, or joins another, if none is due.
func (d *clientDrawing) next() (t drawnTurn) {
	if d.turnIsFirst() {
		at, p := d.planned.Pop()
		if d.file.Delays {
			t = d.delayedTurn(&p, at)
		} else {
			t = d.laterTurn(&p, at)
		}
		t.stamp = at
		return t
	}
	stamp := d.stamp
	t = d.arrival(d.slot)
	t.stamp = stamp
	return t
}

// arrival draws the turn that comes at a time of the clock.
func (d *clientDrawing) arrival(now float64) drawnTurn {
	d.keepUp(d.ahead)
	if !d.Arrivals.OfSessions && d.turnIsDue(now) {
		d.advance()
		_, p := d.planned.Pop()
		return d.laterTurn(&p, now)
	}
	d.advance()
	if d.joining.Len() > 0 {
		if at, _ := d.joining.First(); at <= now {
			_, p := d.joining.Pop()
			return d.laterTurn(&p, now)
		}
	}
	return d.firstTurn(now)
}

// turnIsDue reports whether a planned turn comes now. Turns come early to
// compensate for those that had to wait for the clock.
func (d *clientDrawing) turnIsDue(now float64) bool {
	if d.planned.Len() == 0 {
		return false
	}
	at, t := d.planned.First()
	if late := now - at; late >= -d.early && now-t.since >= (at-t.since)/8 {
		d.early = max(0, d.early+late/latenessWindow)
		return true
	}
	return d.tooManySessions()
}

// tooManySessions reports whether sessions are further ahead of their share of
// the requests than they ever were in the source, with a margin; or, of few sessions,
// whether there are as many as in the source.
func (d *clientDrawing) tooManySessions() bool {
	if d.Sessions < minRequests {
		return d.started >= float64(d.Sessions)*d.all.speed
	}
	share := float64(d.Sessions) / float64(d.Requests)
	usual := share * d.drawn
	limit := usual + d.SessionsAhead*d.all.speed + usual/4 + 3*math.Sqrt(usual*(1-share))
	return d.started > limit
}

func (d *clientDrawing) firstTurn(now float64) drawnTurn {
	d.started++
	phase := d.phase(now)
	t := &turn{session: d.all.newSession(), at: now, phase: phase, template: d.drawTemplate(phase)}
	template := &d.templates[t.template]
	t.shared = template.depth
	known := d.startContext(t.template, phase)
	v := d.first[d.firstTurnsOf(t.template)].draw(known[:]...)
	tokens := d.tokensOf(t.template)
	t.isl, t.osl = max(d.clipISL(float64(tokens)+v[0]), tokens), d.clipOSL(v[1])
	if template.tail > 0 {
		t.isl = tokens
	}
	t.blocks = d.blocksOf(t.isl)
	if t.blocks > t.shared {
		t.runs = []synth.BlockRun{d.all.newRun(t.blocks - t.shared)}
	}
	d.enter(t)
	d.drawn++
	d.proceed(t)
	return drawnTurn{turn: t, after: d.waitsFor(t, nil)}
}

// phase returns the time of the source at a time of the drawing.
func (d *clientDrawing) phase(at float64) float64 { return d.course.at(at) }

func (d *clientDrawing) drawTemplate(phase float64) int {
	if d.popularity.Total() == 0 || d.templated.draw(phase) == none {
		return 0
	}
	return d.templateAt(phase, d.templateChoices.Float64)
}

// laterTurn draws a planned turn.
func (d *clientDrawing) laterTurn(planned *plannedTurn, now float64) drawnTurn {
	p := planned.from
	t := &turn{session: p.session, at: now, phase: d.phase(now), isl: planned.isl, osl: planned.osl, shared: planned.shared}
	if planned.relation == joins {
		d.started++
		t.session = d.all.newSession()
	} else {
		t.follow(p)
		t.agent = p.agent
	}
	d.enter(t)
	t.blocks = d.blocksOf(t.isl)
	t.template, t.runs = d.keep(p, t.shared)
	if t.blocks > t.shared {
		t.runs = append(t.runs, d.all.newRun(t.blocks-t.shared))
	}
	d.drawn++
	after := d.waitsFor(t, planned.after)
	d.proceed(t)
	d.plan(p, planned.order+1, planned.relation, now)
	d.close(t, planned)
	return drawnTurn{turn: t, atOnce: p.at == now, after: after}
}

// keep returns the leading blocks of a turn.
func (d *clientDrawing) keep(p *turn, blocks int) (template int, runs []synth.BlockRun) {
	longer := none
	for template = p.template; d.templates[template].depth > blocks; template = d.templates[template].parent {
		longer = template
	}
	rest := blocks - d.templates[template].depth
	if longer == none {
		return template, firstBlocks(p.runs, rest)
	}
	return template, firstBlocks([]synth.BlockRun{d.templates[longer].run()}, rest)
}

// plan decides whether and how a turn is continued, for the order-th time; last is how it
// was the time before.
func (d *clientDrawing) plan(t *turn, order int, last relation, now float64) {
	known := d.turnContext(t, order, last)
	rel := relation(d.continues[min(order, 1)].drawAt(d.oddsOf(t), known[:]...))
	if rel == none || len(d.client.turns[rel]) == 0 || d.full() || rel == joins && t.level > 0 {
		t.end()
		return
	}
	v := d.turns[rel].draw(known[:]...)
	kind := 0
	if d.file.DelayKinds {
		kind, v = whole(v[0], len(delayKinds)), v[1:]
	}
	p := plannedTurn{from: t, since: now, order: order, relation: rel, kind: delayKinds[kind], wait: max(0, v[1])}
	at := now + p.wait
	if d.file.Delays && rel != joins {
		at += trace.AnswerTime(t.osl)
	}
	if d.Arrivals.OfSessions && !d.file.Delays {
		at = max(now, d.clock.onGrid(at))
	}
	if at > now && d.course.ended(at) {
		t.end()
		return
	}
	lengths := d.lengths[rel].draw(append(known[:], v[0], v[1], d.phase(at), float64(kind))...)
	p.osl = d.clipOSL(lengths[1])
	if p.shared, p.isl = d.nextLengths(t, rel, min(max(0, v[0]), 1), lengths[0]); float64(p.isl) > d.ISL[1] {
		t.end() // the prompt would be too long
		return
	}
	switch {
	case rel == joins:
		d.joining.Push(at, p)
	case t.agent != nil:
		d.follow(t, p)
	default:
		d.planned.Push(at, p)
	}
}

// nextLengths returns the number of blocks that the next turn shares with p,
// and its ISL.
func (d *clientDrawing) nextLengths(p *turn, rel relation, kept, tokens float64) (shared, isl int) {
	full := min(d.fullBlocks(p.isl), p.blocks)
	switch rel {
	case repeats:
		return p.blocks, p.isl
	case extends:
		shared, tokens = full, float64(p.isl)+tokens
		if kept > .5 {
			shared = p.blocks
		}
	case returns:
		shared = min(p.shared, full)
	case edits, joins:
		depth := min(d.templates[p.template].depth, full)
		shared = depth + int(math.Round(kept*float64(full-depth)))
		if kept > 0 {
			shared = max(shared, min(depth+1, full))
		}
	}
	context := float64(shared * d.size.Tokens)
	if rel != extends {
		tokens += context
	}
	return shared, d.wholeTokens(max(d.ISL[0], context, tokens))
}

func (d *clientDrawing) clipISL(tokens float64) int {
	return d.wholeTokens(min(max(d.ISL[0], tokens), d.ISL[1]))
}

func (d *clientDrawing) clipOSL(tokens float64) int {
	low, high := math.Ceil(d.OSL[0]), math.Floor(d.OSL[1])
	return int(math.Round(min(max(low, tokens), high)))
}

// wholeTokens rounds to a whole number of tokens, from 1 to the longest prompt.
func (d *clientDrawing) wholeTokens(tokens float64) int {
	limit := float64(trace.MaxLength)
	if d.hasBlocks {
		limit = min(limit, maxBlocks*float64(d.size.Tokens))
	}
	return int(min(max(1, math.Round(tokens)), limit))
}
