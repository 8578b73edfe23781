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

// Requests draws n requests, at least 1, in order of arrival, the first at about 0.
// Blocks have ids from a round number above those of the source on, first those of
// templates and then others in sequence. Requests with block ids have context_len, the
// leading tokens that an earlier request had, and unique_user_prompt_len, the rest of
// the ISL. If rows of the source have session ids, those of the drawn ones are s1, s2,
// and so on, and s1/1, s1/2, ... for sub-agents.
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
	gaps    *mover // between starts; nil if they do not vary
	slots   *rand.Rand
	lengths *rand.Rand

	pass   int       // repetitions of the source before this one
	starts []float64 // of the sessions of this pass, in units of the clock
	dealt  []int     // these sessions
	begun  int       // of them
	used   []int     // times that each session was begun in this pass

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
		Model: m, jitter: newJitter(m, false), loads: m.loads(), used: make([]int, len(m.sessions)),
		freeID: m.firstBlock, shared: map[sharedRun]*sharedIDs{},
		slots: stats.NewStream(seed, "slots"), lengths: stats.NewStream(seed, "lengths"),
	}
	if !m.clock.exact {
		d.gaps = newMover(m.startGaps(), nil)
	}
	for i := range m.prefixes {
		if m.prefixes[i].template {
			d.idsOf(i, 0)
		}
	}
	d.deal()
	return d
}

// startGaps returns the times from the beginning to the first session, and from each
// session to the next.
func (m *Model) startGaps() []float64 {
	gaps, before := make([]float64, len(m.sessions)), 0.0
	for i := range m.sessions {
		gaps[i] = m.sessions[i].start - before
		before = m.sessions[i].start
	}
	return gaps
}

// roundsPerPass is more than the number of times that a session is begun in a pass.
func (m *Model) roundsPerPass() int { return 2 + int(m.rate) }

// deal plans the next pass: which sessions begin when.
func (d *drawing) deal() {
	gaps := d.startGaps()
	if d.gaps != nil {
		shuffleRuns(gaps[1:], d.slots)
		for i, gap := range gaps {
			gaps[i] = d.gaps.move(gap, lognormal(d.slots, lengthJitter))
		}
	}
	times := make([]float64, len(gaps)+1)
	at := 0.0
	for k, gap := range gaps {
		at = min(at+gap, d.clock.period)
		times[k] = at
	}
	times[len(gaps)] = d.clock.period
	offset := d.slots.Float64()
	d.starts, d.dealt, d.begun = d.starts[:0], d.dealt[:0], 0
	for slot, before := 0, none; slot < int(float64(len(gaps))*d.rate+offset); slot++ {
		k := min(int((float64(slot)+offset)/d.rate), len(gaps)-1)
		at := times[k]
		if k == before && !d.clock.exact { // one more session than in the source
			at += d.slots.Float64() * (times[k+1] - at)
		}
		before = k
		d.dealt = append(d.dealt, k)
		d.starts = append(d.starts, float64(d.pass)*d.clock.period+at)
	}
	slices.Sort(d.starts)
	deal(d.dealt, d.loads, window(len(d.dealt)), d.slots)
	clear(d.used)
	for run := range d.shared { // sessions that have such ids ended in the pass before
		if !d.prefixes[run.prefix].template && run.round < (d.pass-1)*d.roundsPerPass() {
			delete(d.shared, run)
		}
	}
}

// next draws the next request.
func (d *drawing) next() trace.Request {
	for {
		if d.begun == len(d.starts) {
			if d.clock.period == 0 && d.open.Len() > 0 {
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
	s := &drawnSession{session: d.sessions[number], name: "s" + strconv.FormatUint(d.opened, 10), round: d.pass*d.roundsPerPass() + d.used[number]}
	d.used[number]++
	s.turns = d.jitter.vary(s.turns, d.lengths)
	s.own = make([][]synth.BlockRun, len(s.turns))
	s.at, s.order = make([]float64, len(s.turns)), make([]int, len(s.turns))
	for i := range s.turns {
		t := &s.turns[i]
		s.order[i] = i
		if !t.untimed {
			start += t.gap
			s.at[i] = start
		}
		for _, w := range t.after {
			s.at[i] = max(s.at[i], s.at[w])
			if t.untimed {
				s.at[i] = max(s.at[i], s.at[w]+trace.AnswerTime(s.turns[w].osl)+t.delay.Value)
			}
		}
		if t.parent != none {
			s.at[i] = max(s.at[i], s.at[t.parent])
		}
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(s.at[a], s.at[b]) })
	d.open.Push(s.at[s.order[0]], s)
}

// row returns the row of a turn.
func (d *drawing) row(s *drawnSession, turn int) trace.Request {
	t := &s.turns[turn]
	r := trace.Request{
		InputLength: d.islOf(t), OutputLength: t.osl, Delay: t.delay, DelayKind: t.kind, Extra: d.clients[t.client].extra,
	}
	if t.reasoned != none {
		c := &d.clients[t.client]
		r.Extra = slices.Concat(c.before, strconv.AppendInt(nil, int64(math.Round(t.reasoned*float64(t.osl))), 10), c.behind)
	}
	if !t.untimed {
		r.Timestamp = trace.Some(d.clock.ms(s.at[turn]))
	}
	switch {
	case t.agent == 0:
		r.SessionID = s.name
	case t.agent > 0:
		r.SessionID = s.name + "/" + strconv.Itoa(t.agent)
	}
	if d.graph {
		id := func(turn int) string { return s.name + ":" + strconv.Itoa(turn) }
		if r.ID = id(turn); t.named {
			r.After = []string{}
			for _, w := range t.after {
				r.After = append(r.After, id(w))
			}
		}
	}
	if d.hasBlocks {
		d.addBlocks(&r, s, turn)
	}
	return r
}

// addBlocks adds the block ids of a turn.
func (d *drawing) addBlocks(r *trace.Request, s *drawnSession, turn int) {
	t := &s.turns[turn]
	ids := make([]uint64, 0, d.blocksOf(r.InputLength))
	context := 0
	d.path = d.path[:0]
	for p := t.prefix; p > 0; p = d.prefixes[p].parent {
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
	if t.parent != none {
		own = firstBlocks(s.own[t.parent], t.shared)
		context = len(ids) + t.shared
	}
	if fresh := cap(ids) - len(ids) - t.shared; fresh > 0 {
		own = append(own, synth.BlockRun{First: d.freeID, Blocks: fresh})
		d.freeID += uint64(fresh)
	}
	for _, run := range own {
		ids = run.AppendIDs(ids)
	}
	s.own[turn] = own
	r.HashIDs = ids
	r.ContextLen = trace.Some(min(context*d.size.Tokens, r.InputLength))
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
	p := &d.prefixes[prefix]
	if p.template {
		round = 0
	}
	run := sharedRun{prefix, round}
	ids, known := d.shared[run]
	if !known {
		ids = &sharedIDs{BlockRun: synth.BlockRun{First: d.freeID, Blocks: p.blocks}, depth: p.depth}
		d.freeID += uint64(p.blocks)
		d.shared[run] = ids
	}
	return ids
}
