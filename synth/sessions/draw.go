package sessions

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"

	"moontide/trace"
	"moontide/trace/stats"
)

// Requests draws n requests, at least 1, in order of arrival, the first at
// about 0. Ids from 0 are the templates'; those after them are given out one by
// one to what is new. Where they have block ids, requests have context_len, the
// leading tokens that an earlier one of these requests had, and
// unique_user_prompt_len, the rest of the ISL. Session ids are new ones: s1, s2,
// and so on; there are some only if the source had. Later turns have a delay
// instead of a timestamp if most of the source's did.
//
// The stream depends on the model, the seed and n alone, and a smaller n is the
// beginning of a larger. It can be ranged over repeatedly, also at once, and
// yields the same each time. It holds the requests that are still to be gone on
// from, however many it has drawn. Its only error is an n below 1.
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
	// maxDue bounds the turns that are waited for, and so the memory.
	maxDue = 1 << 20
	// patience is over how many turns it shows whether turns come late.
	patience = 64
)

// drawing is one run through a model.
type drawing struct {
	*Model
	clock     *clock
	slot      float64 // the time of the next request that comes by the clock
	beginning *rand.Rand
	first     [2]*sampler
	templated *chooser
	goesOn    [2]*chooser
	turns     [relations]*sampler

	agenda  agenda
	joining agenda // sessions that are to join others
	ordered uint64 // turns put on the agenda
	early   float64
	drawn   float64 // requests
	begun   uint64  // sessions
	fresh   uint64  // the next id that no block has
	visited []bool  // templates
}

func (m *Model) newDrawing(seed uint64) *drawing {
	d := &drawing{
		Model: m, fresh: m.fresh, visited: make([]bool, len(m.templates)),
		clock:     m.arrivals.clock(stats.NewStream(seed, "arrivals"), m.speed),
		beginning: stats.NewStream(seed, "templates"),
		templated: newChooser(&m.templated, stats.NewStream(seed, "templates or none")),
	}
	starting := stats.NewStream(seed, "first turns")
	for i := range d.first {
		d.first[i] = newSampler(m.first[i], starting)
	}
	going := stats.NewStream(seed, "going on")
	for i := range d.goesOn {
		d.goesOn[i] = newChooser(&m.goesOn[i], going)
	}
	later := stats.NewStream(seed, "later turns")
	for i := range d.turns {
		d.turns[i] = newSampler(m.turns[i], later)
	}
	d.slot = d.clock.next()
	return d
}

// next draws a request. A turn that is due takes the time that the clock has,
// so that requests come by the clock and turns when the clock lets them; else a
// session begins, by joining another if one is due to. Where turns follow the turn
// before by themselves, the clock is for sessions only.
func (d *drawing) next() trace.Request {
	now := d.slot
	if d.delays {
		if len(d.agenda) > 0 && (d.agenda[0].at <= now || d.tooManySessions()) {
			return d.laterTurn(d.agenda.take(), math.Inf(1))
		}
	} else if d.turnIsDue(now) {
		d.slot = d.clock.next()
		return d.laterTurn(d.agenda.take(), now)
	}
	d.slot = d.clock.next()
	if len(d.joining) > 0 && d.joining[0].at <= now {
		return d.laterTurn(d.joining.take(), now)
	}
	return d.firstTurn(now)
}

// turnIsDue tells whether a turn shall come now. Turns come early by as much as
// makes up for those that are late because the clock did not let them before.
func (d *drawing) turnIsDue(now float64) bool {
	if len(d.agenda) == 0 {
		return false
	}
	t := &d.agenda[0]
	if late := now - t.at; late >= -d.early && now-t.since >= (t.at-t.since)/8 {
		d.early = max(0, d.early+late/patience)
		return true
	}
	return d.tooManySessions()
}

// tooManySessions tells whether sessions are further ahead of their share of the
// requests than they ever were in the source, and then some. A turn comes then
// before it is due.
func (d *drawing) tooManySessions() bool {
	share := float64(d.starts) / float64(d.requests)
	usual := share * d.drawn
	limit := usual + d.startsAhead*d.speed + usual/4 + 3*math.Sqrt(usual*(1-share))
	return float64(d.begun) > limit
}

func (d *drawing) firstTurn(now float64) trace.Request {
	d.begun++
	t := &turn{session: d.begun, at: now, template: d.drawTemplate(now)}
	t.shared = d.templates[t.template].depth
	known := d.startOf(t.template, now)
	v := d.first[d.firstOf(t.template)].draw(known[:]...)
	t.isl, t.osl = d.islOf(float64(d.tokensOf(t.template))+v[0]), d.oslOf(v[1])
	t.isl = max(t.isl, d.tokensOf(t.template))
	if d.templates[t.template].tail > 0 {
		t.isl = d.tokensOf(t.template)
	}
	t.blocks = d.blocksOf(t.isl)
	if t.blocks > t.shared {
		t.runs = []blockRun{d.newRun(t.blocks - t.shared)}
	}
	r := d.request(t, d.visit(t.template))
	r.Timestamp = trace.Some(now)
	d.plan(t, 0, now)
	return r
}

// visit notes that a template is used and returns how many of its blocks had
// been before.
func (d *drawing) visit(template int) int {
	known := template
	for !d.visited[known] && known > 0 {
		d.visited[known] = true
		known = d.templates[known].parent
	}
	return d.templates[known].depth
}

func (d *drawing) drawTemplate(now float64) int {
	total := d.popular[len(d.popular)-1]
	if total == 0 || d.templated.draw(now) == none {
		return 0
	}
	one := d.beginning.Float64() * total
	return sort.Search(len(d.popular)-1, func(i int) bool { return d.popular[i] > one })
}

// laterTurn draws the turn that is due, at a time or, if that is infinite, when
// it is due.
func (d *drawing) laterTurn(u due, now float64) trace.Request {
	p := u.from
	delayed := math.IsInf(now, 1)
	if delayed {
		now = u.at
	}
	t := &turn{session: p.session, at: now, osl: u.osl}
	if u.relation == joins {
		d.begun++
		t.session = d.begun
	} else {
		t.follow(p)
	}
	t.shared, t.isl = u.shared, u.isl
	t.blocks = d.blocksOf(t.isl)
	t.template, t.runs = d.keep(p, t.shared)
	if t.blocks > t.shared {
		t.runs = append(t.runs, d.newRun(t.blocks-t.shared))
	}
	r := d.request(t, t.shared)
	if delayed {
		r.Delay = trace.Some(microseconds(u.wait))
	} else {
		r.Timestamp = trace.Some(now)
	}
	d.plan(t, 0, now)
	d.plan(p, u.order+1, now)
	return r
}

// keep returns the leading blocks of a turn that the next one has, too.
func (d *drawing) keep(p *turn, blocks int) (template int, runs []blockRun) {
	longer := none
	for template = p.template; d.templates[template].depth > blocks; template = d.templates[template].parent {
		longer = template
	}
	rest := blocks - d.templates[template].depth
	if longer == none {
		return template, firstBlocks(p.runs, rest)
	}
	return template, firstBlocks([]blockRun{{d.templates[longer].first, d.templates[longer].blocks}}, rest)
}

// plan decides whether and how a turn is gone on from, for one more time.
func (d *drawing) plan(t *turn, order int, now float64) {
	known := d.knownOf(t, order)
	what := relation(d.goesOn[min(order, 1)].draw(known[:]...))
	if what == none || len(d.Model.turns[what]) == 0 || len(d.agenda)+len(d.joining) >= maxDue {
		return
	}
	v := d.turns[what].draw(known[:]...)
	u := due{from: t, since: now, order: order, relation: what, osl: d.oslOf(v[3])}
	if u.shared, u.isl = d.lengthsOf(t, what, v[0], v[2]); float64(u.isl) > d.isl.high {
		return // no prompt is as long
	}
	d.ordered++
	u.number = d.ordered
	u.at, u.wait = now+max(0, v[1]), max(0, v[1])
	switch {
	case what == joins:
		d.joining.add(u)
		return
	case d.delays:
		u.at += answerTime(t.osl)
	}
	d.agenda.add(u)
}

// lengthsOf returns the blocks that the next turn shares with a turn, and its
// ISL.
func (d *drawing) lengthsOf(p *turn, what relation, kept, tokens float64) (shared, isl int) {
	full := min(d.fullBlocks(p.isl), p.blocks)
	depth := min(d.templates[p.template].depth, full)
	before := 0 // tokens that there are without the new ones
	switch what {
	case repeats:
		return p.blocks, p.isl
	case extends:
		shared, before = full, p.isl
	case returns:
		shared = min(p.shared, full)
		before = shared * d.size.Tokens
	case edits, joins:
		shared = depth + int(math.Round(kept*float64(full-depth)))
		if kept > 0 {
			shared = max(shared, min(depth+1, full))
		}
		before = shared * d.size.Tokens
	}
	low := max(d.isl.low, float64(shared*d.size.Tokens))
	return shared, d.whole(max(low, float64(before)+tokens))
}

func (d *drawing) newRun(blocks int) blockRun {
	r := blockRun{d.fresh, blocks}
	d.fresh += uint64(blocks)
	return r
}

// islOf makes a number of tokens that a prompt has.
func (d *drawing) islOf(tokens float64) int {
	return d.whole(min(max(d.isl.low, tokens), d.isl.high))
}

// oslOf makes a number of tokens that an answer has.
func (d *drawing) oslOf(tokens float64) int {
	low, high := math.Ceil(d.osl.low), math.Floor(d.osl.high)
	return int(math.Round(min(max(low, tokens), high)))
}

// whole makes a whole number of tokens, at least 1, of which no more blocks come
// than a prompt may have.
func (d *drawing) whole(tokens float64) int {
	limit := float64(trace.MaxLength)
	if d.hasBlocks {
		limit = min(limit, maxBlocks*float64(d.size.Tokens))
	}
	return int(min(max(1, math.Round(tokens)), limit))
}

// request makes the row of a turn of which so many leading blocks were there
// before.
func (d *drawing) request(t *turn, known int) trace.Request {
	d.drawn++
	r := trace.Request{InputLength: t.isl, OutputLength: t.osl}
	if d.hasSessions {
		r.SessionID = "s" + strconv.FormatUint(t.session, 10)
	}
	if !d.hasBlocks {
		return r
	}
	r.HashIDs = make([]uint64, 0, t.blocks)
	r.HashIDs = d.appendTemplate(r.HashIDs, t.template)
	for _, run := range t.runs {
		for i := range uint64(run.blocks) {
			r.HashIDs = append(r.HashIDs, run.first+i)
		}
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
	ids = d.appendTemplate(ids, t.parent)
	for i := range uint64(t.blocks) {
		ids = append(ids, t.first+i)
	}
	return ids
}
