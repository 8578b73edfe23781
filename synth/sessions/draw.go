package sessions

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"moontide/synth"
	"moontide/trace"
	"moontide/trace/stats"
)

// Requests draws n requests, at least 1, in order of arrival, the first at
// about 0. Templates have the first block ids; the others follow in sequence.
// Requests with block ids have context_len, the leading tokens that an earlier
// request had, and unique_user_prompt_len, the rest of the ISL. If the source has
// session ids, the drawn ones are s1, s2, and so on. If most of its later turns
// have a delay instead of a timestamp, so do the drawn ones.
//
// The requests depend only on the model and the seed, and a smaller n gives a
// prefix of a larger one. The stream can be ranged over repeatedly and
// concurrently. Its memory does not grow with n. Its only error is an n below 1.
func (m *Model) Requests(seed uint64, n int) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		if n < 1 {
			yield(trace.Request{}, fmt.Errorf("drawing %d requests: at least 1 is needed", n))
			return
		}
		d := m.newDrawing(seed)
		for range n {
			if !yield(d.next(), nil) {
				return
			}
		}
	}
}

const (
	// maxPlanned limits the planned turns, to bound memory.
	maxPlanned = 1 << 20
	// latenessWindow is the number of turns over which lateness is averaged.
	latenessWindow = 64
)

// drawing is one pass through a model.
type drawing struct {
	*Model
	clock           *arrivalClock
	slot            float64 // next time of the clock
	templateChoices *rand.Rand
	first           [2]*jointSampler
	templated       *choiceSampler
	continues       [2]*choiceSampler
	turns           [relations]*jointSampler

	planned synth.Queue[plannedTurn]
	joining synth.Queue[plannedTurn] // sessions that will join another
	early   float64                  // how early turns may come, in ms
	drawn   float64                  // requests
	started uint64                   // sessions
	free    uint64                   // next unused block id
	used    []bool                   // whether each template was used
}

// plannedTurn is a future turn.
type plannedTurn struct {
	from     *turn
	since    float64 // when it was planned
	order    int     // how often from was continued before this
	relation relation
	shared   int // blocks shared with from
	isl, osl int
	wait     float64 // ms, not including the answer's time if the model has delays
}

func (m *Model) newDrawing(seed uint64) *drawing {
	stream := func(aspect string) *rand.Rand { return stats.NewStream(seed, aspect) }
	d := &drawing{
		Model: m, free: m.firstFree, used: make([]bool, len(m.templates)),
		clock:           m.file.Arrivals.newClock(stream("arrivals"), m.speed),
		templateChoices: stream("templates"),
		templated:       newChoiceSampler(&m.file.Templated, stream("templates or none")),
	}
	first, continues, later := stream("first turns"), stream("going on"), stream("later turns")
	for i := range d.first {
		d.first[i] = newJointSampler(m.firstTurns[i], first)
	}
	for i := range d.continues {
		d.continues[i] = newChoiceSampler(m.continues[i], continues)
	}
	for i := range d.turns {
		d.turns[i] = newJointSampler(m.turns[i], later)
	}
	d.slot = d.clock.next()
	return d
}

// next draws a request. A planned turn that is due takes the clock's next time.
// Otherwise a session starts, or joins another if one is planned. If later turns
// have delays, the clock only starts sessions.
func (d *drawing) next() trace.Request {
	now := d.slot
	if d.file.Delays {
		if d.planned.Len() > 0 {
			if at, _ := d.planned.First(); at <= now || d.tooManySessions() {
				_, t := d.planned.Pop()
				r := d.laterTurn(&t, at)
				r.Delay = trace.Some(microseconds(t.wait))
				return r
			}
		}
	} else if d.turnIsDue(now) {
		d.slot = d.clock.next()
		return d.timedTurn(&d.planned, now)
	}
	d.slot = d.clock.next()
	if d.joining.Len() > 0 {
		if at, _ := d.joining.First(); at <= now {
			return d.timedTurn(&d.joining, now)
		}
	}
	return d.firstTurn(now)
}

// turnIsDue reports whether a planned turn comes now. Turns come early to
// compensate for those that had to wait for the clock.
func (d *drawing) turnIsDue(now float64) bool {
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
// the requests than they ever were in the source, with a margin.
func (d *drawing) tooManySessions() bool {
	share := float64(d.file.Sessions) / float64(d.file.Requests)
	usual := share * d.drawn
	limit := usual + d.file.SessionsAhead*d.speed + usual/4 + 3*math.Sqrt(usual*(1-share))
	return float64(d.started) > limit
}

func (d *drawing) firstTurn(now float64) trace.Request {
	d.started++
	t := &turn{session: d.started, at: now, template: d.drawTemplate(now)}
	template := &d.templates[t.template]
	t.shared = template.depth
	known := d.startContext(t.template, now)
	v := d.first[d.firstTurnsOf(t.template)].draw(known[:]...)
	tokens := d.tokensOf(t.template)
	t.isl, t.osl = max(d.clipISL(float64(tokens)+v[0]), tokens), d.clipOSL(v[1])
	if template.tail > 0 {
		t.isl = tokens
	}
	t.blocks = d.blocksOf(t.isl)
	if t.blocks > t.shared {
		t.runs = []synth.BlockRun{d.newRun(t.blocks - t.shared)}
	}
	r := d.request(t, d.useTemplate(t.template))
	r.Timestamp = trace.Some(now)
	d.plan(t, 0, now)
	return r
}

// useTemplate marks a template as used and returns how many of its blocks an
// earlier request had.
func (d *drawing) useTemplate(template int) (known int) {
	for !d.used[template] && template > 0 {
		d.used[template] = true
		template = d.templates[template].parent
	}
	return d.templates[template].depth
}

func (d *drawing) drawTemplate(now float64) int {
	if d.popularity.Total() == 0 || d.templated.draw(now) == none {
		return 0
	}
	return d.popularity.At(d.templateChoices.Float64())
}

// timedTurn draws the first turn of a queue, with a timestamp.
func (d *drawing) timedTurn(queue *synth.Queue[plannedTurn], now float64) trace.Request {
	_, t := queue.Pop()
	r := d.laterTurn(&t, now)
	r.Timestamp = trace.Some(now)
	return r
}

// laterTurn draws a planned turn without a timestamp.
func (d *drawing) laterTurn(planned *plannedTurn, now float64) trace.Request {
	p := planned.from
	t := &turn{session: p.session, at: now, isl: planned.isl, osl: planned.osl, shared: planned.shared}
	if planned.relation == joins {
		d.started++
		t.session = d.started
	} else {
		t.follow(p)
	}
	t.blocks = d.blocksOf(t.isl)
	t.template, t.runs = d.keep(p, t.shared)
	if t.blocks > t.shared {
		t.runs = append(t.runs, d.newRun(t.blocks-t.shared))
	}
	r := d.request(t, t.shared)
	d.plan(t, 0, now)
	d.plan(p, planned.order+1, now)
	return r
}

// keep returns the leading blocks of a turn.
func (d *drawing) keep(p *turn, blocks int) (template int, runs []synth.BlockRun) {
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

// plan decides whether and how a turn is continued, for the order-th time.
func (d *drawing) plan(t *turn, order int, now float64) {
	known := d.turnContext(t, order)
	rel := relation(d.continues[min(order, 1)].draw(known[:]...))
	if rel == none || len(d.Model.turns[rel]) == 0 || d.planned.Len()+d.joining.Len() >= maxPlanned {
		return
	}
	v := d.turns[rel].draw(known[:]...)
	p := plannedTurn{from: t, since: now, order: order, relation: rel, osl: d.clipOSL(v[3]), wait: max(0, v[1])}
	if p.shared, p.isl = d.nextLengths(t, rel, v[0], v[2]); float64(p.isl) > d.file.ISL[1] {
		return // the prompt would be too long
	}
	at := now + p.wait
	switch {
	case rel == joins:
		d.joining.Push(at, p)
	case d.file.Delays:
		d.planned.Push(at+trace.AnswerTime(t.osl), p)
	default:
		d.planned.Push(at, p)
	}
}

// nextLengths returns the number of blocks that the next turn shares with p,
// and its ISL.
func (d *drawing) nextLengths(p *turn, rel relation, kept, tokens float64) (shared, isl int) {
	full := min(d.fullBlocks(p.isl), p.blocks)
	switch rel {
	case repeats:
		return p.blocks, p.isl
	case extends:
		shared, tokens = full, float64(p.isl)+tokens
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
	return shared, d.wholeTokens(max(d.file.ISL[0], context, tokens))
}

func (d *drawing) newRun(blocks int) synth.BlockRun {
	r := synth.BlockRun{First: d.free, Blocks: blocks}
	d.free += uint64(blocks)
	return r
}

func (d *drawing) clipISL(tokens float64) int {
	return d.wholeTokens(min(max(d.file.ISL[0], tokens), d.file.ISL[1]))
}

func (d *drawing) clipOSL(tokens float64) int {
	low, high := math.Ceil(d.file.OSL[0]), math.Floor(d.file.OSL[1])
	return int(math.Round(min(max(low, tokens), high)))
}

// wholeTokens rounds to a whole number of tokens, from 1 to the longest prompt.
func (d *drawing) wholeTokens(tokens float64) int {
	limit := float64(trace.MaxLength)
	if d.hasBlocks {
		limit = min(limit, maxBlocks*float64(d.size.Tokens))
	}
	return int(min(max(1, math.Round(tokens)), limit))
}

// request returns the row of a turn. An earlier request had its first known
// blocks.
func (d *drawing) request(t *turn, known int) trace.Request {
	d.drawn++
	r := trace.Request{InputLength: t.isl, OutputLength: t.osl}
	if d.file.SessionIDs {
		r.SessionID = "s" + strconv.FormatUint(t.session, 10)
	}
	if !d.hasBlocks {
		return r
	}
	r.HashIDs = d.appendTemplate(make([]uint64, 0, t.blocks), t.template)
	for _, run := range t.runs {
		r.HashIDs = run.AppendIDs(r.HashIDs)
	}
	context := min(known*d.size.Tokens, t.isl)
	r.ContextLen, r.UniquePromptLen = trace.Some(context), trace.Some(t.isl-context)
	return r
}

func (d *drawing) appendTemplate(ids []uint64, template int) []uint64 {
	if template == 0 {
		return ids
	}
	t := &d.templates[template]
	return t.run().AppendIDs(d.appendTemplate(ids, t.parent))
}
