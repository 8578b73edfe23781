package sessions

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"moontide/synth"
	"moontide/trace"
	"moontide/trace/stats"
)

// Requests draws n requests, at least 1, in order of arrival. Block ids are numbers from a
// round one above those of the source on. Requests that have some have context_len, the
// leading tokens that an earlier request had, and unique_user_prompt_len, the rest of
// the ISL. Session ids are s1, s2, and so on, and s1/1, s1/2, ... of sub-agents.
//
// The requests depend only on the model and the seed, and a smaller n gives a prefix of a
// larger one. The stream can be ranged over repeatedly and concurrently. Its memory does
// not grow with n. Its only error is an n below 1.
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

// drawing is the state of a stream of drawn requests.
type drawing struct {
	*Model
	jitter  *jitter
	loads   []load
	lasts   []float64 // durations of the sessions, in units of the clock
	end     float64   // of the last of them in the source
	gaps    *mover    // between starts; nil if they do not vary
	slots   *rand.Rand
	lengths *rand.Rand

	pass   int       // repetitions of the source before this one
	starts []float64 // of the sessions of this pass, in units of the clock
	dealt  []int     // these sessions
	begun  int       // of them
	used   []int     // times that each session was begun in this pass

	tick, offset float64 // the last tick, and how long after it the last request arrived

	opened uint64
	open   synth.Queue[*drawnSession] // by the time of the next turn
	freeID uint64
	shared map[sharedRun]*sharedIDs
	path   []*sharedIDs // of the prefix of a row
}

// drawnSession is a session of the drawn trace that has not ended.
type drawnSession struct {
	session
	name  string
	round int       // counts the uses of the source's session
	at    []float64 // of the turns, in units of the clock
	order []int     // turns that are not drawn yet, in order of time
	own   [][]synth.BlockRun
}

// sharedRun is a prefix in one round; that of templates is 0.
type sharedRun struct{ prefix, round int }

// sharedIDs are the ids of a shared run, and whether a row had them.
type sharedIDs struct {
	synth.BlockRun
	depth int
	seen  bool
}

func (m *Model) newDrawing(seed uint64) *drawing {
	d := &drawing{
		Model: m, jitter: newJitter(m, false), loads: m.loads(), used: make([]int, len(m.Sessions)),
		tick: none, freeID: m.FirstBlock, shared: map[sharedRun]*sharedIDs{},
		slots: stats.NewStream(seed, "slots"), lengths: stats.NewStream(seed, "lengths"),
	}
	if !m.Clock.Exact {
		d.gaps = newMover(m.startGaps())
	}
	for i := range m.Prefixes {
		if m.Prefixes[i].Template {
			d.idsOf(i, 0)
		}
	}
	for i := range m.Sessions {
		s := &drawnSession{session: m.Sessions[i]}
		m.plan(s, s.Start, s.Start)
		d.lasts = append(d.lasts, slices.Max(s.at)-s.Start)
		d.end = max(d.end, slices.Max(s.at))
	}
	d.deal()
	return d
}

// startGaps returns the times before each session since the one before it; 0 for the first.
func (m *Model) startGaps() []float64 {
	gaps, before := make([]float64, len(m.Sessions)), m.Sessions[0].Start
	for i := range m.Sessions {
		gaps[i] = m.Sessions[i].Start - before
		before = m.Sessions[i].Start
	}
	return gaps
}

// roundsPerPass is more than the number of times that a session is begun in a pass.
func (m *Model) roundsPerPass() int { return 2 + int(m.rate) }

// deal plans the next pass: which sessions begin when.
func (d *drawing) deal() {
	gaps := d.startGaps()
	times := make([]float64, len(gaps)+1)
	at := d.Sessions[0].Start
	for i, gap := range gaps {
		if d.gaps != nil {
			gap = d.gaps.move(gap, lognormal(d.slots, lengthJitter))
		}
		at = min(at+gap, d.Clock.Period)
		times[i] = at
	}
	times[len(gaps)] = d.Clock.Period
	offset := d.slots.Float64()
	d.starts, d.dealt, d.begun = d.starts[:0], d.dealt[:0], 0
	for place := range int(float64(len(gaps))*d.rate + offset) {
		i := min(int((float64(place)+offset)/d.rate), len(gaps)-1)
		at := times[i]
		if place > 0 && i == d.dealt[place-1] && !d.Clock.Exact { // one more session than in the source
			at += d.slots.Float64() * (times[i+1] - at)
		}
		d.dealt = append(d.dealt, i)
		d.starts = append(d.starts, float64(d.pass)*d.Clock.Period+at)
	}
	slices.Sort(d.starts)
	last := make([]int, len(d.dealt)) // places of the sessions, so that they end before the trace
	for place, number := range d.dealt {
		end := float64(d.pass)*d.Clock.Period + d.end - d.lasts[number]
		last[place], _ = slices.BinarySearch(d.starts, math.Nextafter(end, math.Inf(1)))
		last[place]--
	}
	deal(d.dealt, d.loads, window(len(d.dealt)), last, d.slots)
	clear(d.used)
	for run := range d.shared { // sessions that have such ids ended in the pass before
		if !d.Prefixes[run.prefix].Template && run.round < (d.pass-1)*d.roundsPerPass() {
			delete(d.shared, run)
		}
	}
}

// next draws the next request.
func (d *drawing) next() trace.Request {
	for {
		if d.begun == len(d.starts) {
			if d.Clock.Period == 0 && d.open.Len() > 0 {
				break // passes begin at one instant, and end one after the other
			}
			d.pass++
			d.deal()
			continue
		}
		if d.open.Len() > 0 {
			if at, _ := d.open.First(); at < d.starts[d.begun] {
				break
			}
		}
		d.begin()
	}
	_, s := d.open.Pop()
	turn := s.order[0]
	if s.order = s.order[1:]; len(s.order) > 0 {
		d.open.Push(s.at[s.order[0]], s)
	}
	return d.row(s, turn)
}

// begin opens the next session of the pass.
func (d *drawing) begin() {
	start, number := d.starts[d.begun], d.dealt[d.begun]
	d.begun++
	d.opened++
	s := &drawnSession{session: d.Sessions[number], name: "s" + strconv.FormatUint(d.opened, 10), round: d.pass*d.roundsPerPass() + d.used[number]}
	d.used[number]++
	from := s.Start
	s.Turns = d.jitter.vary(s.Turns, d.lengths)
	s.own = make([][]synth.BlockRun, len(s.Turns))
	d.plan(s, from, start)
	if d.Clock.Ticks != nil { // the last tick of the pass is that of the source
		for i := range s.at {
			s.at[i] = min(s.at[i], float64(d.pass+1)*d.Clock.Period-1)
		}
	}
	d.open.Push(s.at[s.order[0]], s)
}

// plan sets the times of a session that began at a time of the source, and their order.
func (m *Model) plan(s *drawnSession, from, start float64) {
	s.at, s.order = make([]float64, len(s.Turns)), make([]int, len(s.Turns))
	at := from
	for i := range s.Turns {
		t := &s.Turns[i]
		s.order[i] = i
		if t.Timing != delayOnly {
			at += t.Gap
			s.at[i] = m.Clock.shifted(at, from, start)
		}
		for _, back := range t.Waits {
			s.at[i] = max(s.at[i], s.at[i-back])
			if t.Timing == delayOnly {
				s.at[i] = max(s.at[i], s.at[i-back]+trace.AnswerTime(s.Turns[i-back].OSL)+t.Delay)
			}
		}
		if t.Parent > 0 {
			s.at[i] = max(s.at[i], s.at[i-t.Parent])
		}
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(s.at[a], s.at[b]) })
}

// row returns the row of a turn.
func (d *drawing) row(s *drawnSession, turn int) trace.Request {
	t := &s.Turns[turn]
	r := trace.Request{
		InputLength: d.islOf(t), OutputLength: t.OSL, DelayKind: t.Kind, Extra: d.KnownClients[t.Client].extra,
		Delay: trace.Opt[float64]{Value: t.Delay, Set: t.Timing != timestamp},
	}
	if t.Reasoned > 0 {
		r.Extra = d.reasoned(t)
	}
	if t.Timing != delayOnly {
		r.Timestamp = trace.Some(d.timeOf(s.at[turn]))
	}
	switch {
	case t.Agent == 1:
		r.SessionID = s.name
	case t.Agent > 1:
		r.SessionID = s.name + "/" + strconv.Itoa(t.Agent-1)
	}
	if d.Graph {
		id := func(turn int) string { return s.name + ":" + strconv.Itoa(turn) }
		if r.ID = id(turn); t.Named {
			r.After = []string{}
			for _, back := range t.Waits {
				r.After = append(r.After, id(turn-back))
			}
		}
	}
	if d.Tokens > 0 {
		d.addBlocks(&r, s, turn)
	}
	return r
}

// timeOf returns the time in ms of the next request, which is at a number of units.
func (d *drawing) timeOf(units float64) float64 {
	at, next := d.Clock.ms(units)
	if len(d.Clock.Spacing) == 0 {
		return at
	}
	if at != d.tick {
		d.tick, d.offset = at, 0
	} else {
		d.offset += d.Clock.Spacing[d.slots.IntN(len(d.Clock.Spacing))]
	}
	return min(math.Round((at+d.offset)*d.Clock.PerMs)/d.Clock.PerMs, next)
}

// addBlocks adds the block ids of a turn.
func (d *drawing) addBlocks(r *trace.Request, s *drawnSession, turn int) {
	t := &s.Turns[turn]
	ids := make([]uint64, 0, d.blocksOf(r.InputLength))
	context := 0
	d.path = d.path[:0]
	for p := t.Prefix; p > 0; p = d.Prefixes[p].Parent {
		d.path = append(d.path, d.idsOf(p, s.round))
	}
	for _, run := range slices.Backward(d.path) {
		ids = run.AppendIDs(ids)
		if run.seen {
			context = run.depth
		}
		run.seen = true
	}
	var own []synth.BlockRun
	if t.Parent > 0 {
		own = firstBlocks(s.own[turn-t.Parent], t.Shared)
		context = len(ids) + t.Shared
	}
	if fresh := cap(ids) - len(ids) - t.Shared; fresh > 0 {
		own = append(own, synth.BlockRun{First: d.freeID, Blocks: fresh})
		d.freeID += uint64(fresh)
	}
	for _, run := range own {
		ids = run.AppendIDs(ids)
	}
	s.own[turn] = own
	r.HashIDs = ids
	r.ContextLen = trace.Some(min(context*d.Tokens, r.InputLength))
	r.UniquePromptLen = trace.Some(r.InputLength - r.ContextLen.Value)
}

// firstBlocks returns the leading blocks of runs, in a list of its own.
func firstBlocks(runs []synth.BlockRun, blocks int) (first []synth.BlockRun) {
	for _, run := range runs {
		if blocks == 0 {
			break
		}
		run.Blocks = min(run.Blocks, blocks)
		blocks -= run.Blocks
		first = append(first, run)
	}
	return first
}

// idsOf returns the ids of a prefix in a round, after those of its parent.
func (d *drawing) idsOf(prefix, round int) *sharedIDs {
	p := &d.Prefixes[prefix]
	if p.Template {
		round = 0
	}
	run := sharedRun{prefix, round}
	ids, known := d.shared[run]
	if !known {
		ids = &sharedIDs{BlockRun: synth.BlockRun{First: d.freeID, Blocks: p.Blocks}, depth: p.depth}
		d.freeID += uint64(p.Blocks)
		d.shared[run] = ids
	}
	return ids
}
