package sessions

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"

	"moontide/synth"
	"moontide/trace"
	"moontide/trace/stats"
)

// Requests draws n requests, at least 1, in order of arrival. Block ids are numbers from a
// power of 10 above those of the source on. Requests that have some have context_len, the
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

// drawing is the state of a stream of drawn requests. It draws in passes, each of which has
// all sessions of the source.
type drawing struct {
	*Model
	jitter   *jitter
	arrivals *arrivals
	slots    *rand.Rand
	lengths  *rand.Rand

	source  []place                    // each session at its own place, as many times as a pass has it
	byClass []int                      // these, those of a class together
	end     float64                    // the last position of a turn
	places  []place                    // of this pass
	begun   int                        // of them
	arrived int                        // requests with a timestamp
	named   uint64                     // sessions of the trace
	open    synth.Queue[*drawnSession] // by the position of the next turn

	freeID uint64
	shared map[sharedRun]*sharedIDs
	path   []*sharedIDs // of the prefix of a row
}

// place is where a session begins in a pass.
type place struct {
	start    float64 // position
	number   int     // of the session
	copy     int     // of it in this pass
	duration float64 // from its first turn to its last
	class    int     // of sessions with about as many requests and tokens of prompts
	wish     float64 // the number of the place where it goes
	left     bool    // out of the trace: its requests only pass the time
}

// drawnSession is a session of the drawn trace that has not ended.
type drawnSession struct {
	place
	turns []turn
	name  string
	at    []float64 // positions of the turns
	order []int     // turns that are not drawn yet, in order of position
	own   [][]synth.BlockRun
}

// sharedRun is a prefix of the copies with a number; that of templates is 0.
type sharedRun struct{ prefix, copy int }

// sharedIDs are the ids of a shared run, and whether a row had them.
type sharedIDs struct {
	synth.BlockRun
	seen bool
}

func (m *Model) newDrawing(seed uint64) *drawing {
	d := &drawing{
		Model: m, jitter: newJitter(m), arrivals: m.newArrivals(stats.NewStream(seed, "arrivals")),
		slots: stats.NewStream(seed, "slots"), lengths: stats.NewStream(seed, "lengths"),
		freeID: m.FirstBlock, shared: map[sharedRun]*sharedIDs{},
	}
	for i, turns := range m.Sessions {
		p := place{start: d.position(turns[0].Arrival), number: i, duration: slices.Max(d.positions(turns, 0))}
		tokens := 0
		for k := range turns {
			tokens += m.islOf(&turns[k])
		}
		rest := max(0, bits.Len(uint(len(turns)))-3) // of the number of turns, three digits count
		p.class = len(turns)>>rest<<rest*64 + bits.Len(uint(tokens))
		for p.copy = range m.copies() {
			d.byClass = append(d.byClass, len(d.source))
			d.source = append(d.source, p)
		}
		d.end = max(d.end, p.start+p.duration)
	}
	slices.SortStableFunc(d.byClass, func(a, b int) int { return cmp.Compare(d.source[a].class, d.source[b].class) })
	return d
}

// copies returns how many times a pass has each session, at a rate of at most 1.
func (m *Model) copies() int { return int(math.Ceil(m.rate)) }

// position returns where an arrival of the source is in a pass. Positions are times, with
// a little more for each arrival, so that those at one time keep their order.
func (d *drawing) position(arrival int) float64 {
	return d.Clock.at[arrival] + .01*float64(arrival)
}

// deal plans the next pass: which sessions begin where. A session takes the place of one
// of its class nearby, because its neighbours share its clients, load and templates, and
// none from which it would last beyond the end. At rates other than 1, some copies of each
// class are left out.
func (d *drawing) deal() {
	moves := slices.Clone(d.source)
	window := min(max(25, len(moves)/40), len(moves)/4)
	for i := range moves {
		p := &moves[i]
		last, _ := slices.BinarySearchFunc(moves, d.end-p.duration, func(p place, end float64) int { return cmp.Compare(p.start, end) })
		p.wish = min(float64(i)+float64(window)*(d.slots.Float64()-.5), float64(max(i, last-1)))
	}
	slices.SortFunc(moves, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.wish, b.wish), cmp.Compare(a.number, b.number))
	})
	d.places, d.begun = make([]place, len(moves)), 0
	kept := d.slots.Float64()
	for i, to := range d.byClass {
		before := math.Floor(kept)
		kept += d.rate / float64(d.copies())
		p := &d.places[to]
		*p = moves[i]
		p.start, p.left = d.source[to].start, math.Floor(kept) == before
	}
	maps.DeleteFunc(d.shared, func(run sharedRun, _ *sharedIDs) bool { return !d.Prefixes[run.prefix].Template })
}

// next draws the next request.
func (d *drawing) next() trace.Request {
	for {
		for d.begun == len(d.places) && d.open.Len() == 0 {
			d.deal()
		}
		for d.begun < len(d.places) {
			if d.open.Len() > 0 {
				if at, _ := d.open.First(); at < d.places[d.begun].start {
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
		var at trace.Opt[float64]
		if s.turns[turn].Timing != delayOnly {
			at = trace.Some(d.arrivals.time(float64(d.arrived) / float64(d.copies())))
			d.arrived++
		}
		if !s.left {
			return d.row(s, turn, at)
		}
	}
}

// begin opens the next session of the pass.
func (d *drawing) begin() {
	s := &drawnSession{place: d.places[d.begun]}
	d.begun++
	if s.turns = d.Sessions[s.number]; !s.left {
		d.named++
		s.name = "s" + strconv.FormatUint(d.named, 10)
		s.turns = d.jitter.vary(s.turns, d.lengths)
	}
	s.own = make([][]synth.BlockRun, len(s.turns))
	s.at = d.positions(s.turns, s.start)
	for i := range s.at {
		s.at[i] = min(s.at[i], d.end)
		s.order = append(s.order, i)
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(s.at[a], s.at[b]) })
	d.open.Push(s.at[s.order[0]], s)
}

// positions returns those of the turns of a session that begins at one.
func (d *drawing) positions(turns []turn, start float64) []float64 {
	at := make([]float64, len(turns))
	for i := range turns {
		t := &turns[i]
		if at[i] = start; t.Timing != delayOnly {
			at[i] += d.position(t.Arrival) - d.position(turns[0].Arrival)
		}
		for _, back := range t.Waits {
			at[i] = max(at[i], at[i-back])
			if t.Timing == delayOnly {
				at[i] = max(at[i], at[i-back]+trace.ResponseTime(turns[i-back].OSL)+t.Delay)
			}
		}
		if t.Parent > 0 {
			at[i] = max(at[i], at[i-t.Parent])
		}
	}
	return at
}

// row returns the row of a turn.
func (d *drawing) row(s *drawnSession, turn int, at trace.Opt[float64]) trace.Request {
	t := &s.turns[turn]
	r := trace.Request{
		Timestamp: at, InputLength: d.islOf(t), OutputLength: t.OSL, DelayKind: t.Kind, Extra: d.extra(t),
		Delay: trace.Opt[float64]{Value: t.Delay, Set: t.Timing != timestamp},
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

// addBlocks adds the block ids of a turn.
func (d *drawing) addBlocks(r *trace.Request, s *drawnSession, turn int) {
	t := &s.turns[turn]
	ids := make([]uint64, 0, d.blocksOf(r.InputLength))
	context := 0
	d.path = d.path[:0]
	for p := t.Prefix; p > 0; p = d.Prefixes[p].Parent {
		d.path = append(d.path, d.idsOf(p, s.copy))
	}
	for _, run := range slices.Backward(d.path) {
		ids = run.AppendIDs(ids)
		if run.seen {
			context = len(ids)
		}
		run.seen = true
	}
	var own []synth.BlockRun
	if left := t.Shared; left > 0 {
		context = len(ids) + left
		for _, run := range s.own[turn-t.Parent] {
			if run.Blocks = min(run.Blocks, left); run.Blocks > 0 {
				own = append(own, run)
			}
			left -= run.Blocks
		}
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

// idsOf returns the ids of a prefix for copies with a number, after those of its parent.
func (d *drawing) idsOf(prefix, copy int) *sharedIDs {
	p := &d.Prefixes[prefix]
	if p.Template {
		copy = 0
	}
	run := sharedRun{prefix, copy}
	ids, known := d.shared[run]
	if !known {
		ids = &sharedIDs{BlockRun: synth.BlockRun{First: d.freeID, Blocks: p.Blocks}}
		d.freeID += uint64(p.Blocks)
		d.shared[run] = ids
	}
	return ids
}
