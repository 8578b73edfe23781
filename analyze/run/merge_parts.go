package run

import (
	"cmp"
	"container/heap"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
)

// Part is the recording of a run or of one part of it, before its metrics are
// computed.
type Part struct {
	Name    string // of a part, in messages: its folder
	Run     runfile.Run
	Records iter.Seq2[replay.Record, error]
	Samples iter.Seq2[runfile.Sample, error]
}

// Merged is the recording of a run that several processes drove.
type Merged struct {
	Part   // the whole run
	faults []string
	parts  []*mergedPart
}

// mergedPart is one of the parts.
type mergedPart struct {
	Part
	move
	tally *tally // nil unless the part is judged
}

// Merge merges the recordings of the parts of a run. Records are merged in the order
// in which requests ended, with a few records of each part in memory. known is what
// the leader of the run knew of its parts, nil if unknown.
//
// The times of a part's records are moved to the clock of the whole run, each record
// as a whole: durations are those of the part's clock. Rows of parts of one schedule
// stay. Those of other runs are numbered consecutively, as are targets, and prompts
// of runs with different seeds or salts share nothing. Read delays are those of the
// worst machine, server metrics those of the first part that has any. Runs that
// started more than [replay.MaxWait] apart are not parts of one test.
func Merge(parts []Part, known *runfile.Parts) (*Merged, error) {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(a.Run.Part.Number, b.Run.Part.Number) })
	start := startOf(parts)
	for _, part := range parts {
		if apart := startedAt(&part.Run).Sub(start); apart.Abs() > replay.MaxWait {
			return nil, fmt.Errorf("merging runs: one started at %v and another at %v: they are not parts of one test",
				start.Format(time.DateTime), part.Run.Started.Format(time.DateTime))
		}
	}
	m := &Merged{faults: partFaults(parts, known)}
	for i, move := range movesOf(parts, start) {
		m.parts = append(m.parts, &mergedPart{Part: parts[i], move: move})
	}
	m.Run, m.Records, m.Samples = mergedRun(parts, start), m.records, m.samples
	return m, nil
}

// Judge has each part judged by itself when the records are read, with the options
// that [Compute] needs for it: those of its run and, of the whole run, the window
// and the thresholds.
func (m *Merged) Judge(of func(part int, run *runfile.Run) Options) {
	for i, part := range m.parts {
		opts := of(i, &part.Run)
		opts.Rows, opts.Objectives = 0, nil // rows are checked in the whole run
		t := newTally(opts, partLatencies)
		part.tally = &t
	}
}

func (m *Merged) records(yield func(replay.Record, error) bool) {
	var sources []iter.Seq2[replay.Record, error]
	for _, part := range m.parts {
		sources = append(sources, part.moved)
	}
	for rec, err := range inOrder(sources) {
		if !yield(rec, err) || err != nil {
			return
		}
	}
}

// moved returns the records of a part as records of the whole run.
func (p *mergedPart) moved(yield func(replay.Record, error) bool) {
	for rec, err := range p.Records {
		if err == nil {
			p.time(&rec)
			if p.tally != nil {
				timing := TimingOf(&rec)
				p.tally.add(&rec, &timing)
			}
			p.number(&rec)
		}
		if !yield(rec, err) {
			return
		}
	}
}

// inOrder merges records by the time at which their requests ended.
func inOrder(sources []iter.Seq2[replay.Record, error]) iter.Seq2[replay.Record, error] {
	return func(yield func(replay.Record, error) bool) {
		var h heads
		for i, source := range sources {
			next, stop := iter.Pull2(source)
			defer stop()
			if rec, err, some := next(); some {
				h = append(h, &head{rec, err, i, next})
			}
		}
		heap.Init(&h)
		for len(h) > 0 {
			first := h[0]
			if !yield(first.rec, first.err) || first.err != nil {
				return
			}
			some := false
			if first.rec, first.err, some = first.next(); some {
				heap.Fix(&h, 0)
			} else {
				heap.Pop(&h)
			}
		}
	}
}

// head is the next record of a source.
type head struct {
	rec    replay.Record
	err    error
	source int
	next   func() (replay.Record, error, bool)
}

// heads is a heap with errors first.
type heads []*head

func (h heads) Len() int      { return len(h) }
func (h heads) Swap(i, k int) { h[i], h[k] = h[k], h[i] }
func (h heads) Less(i, k int) bool {
	a, b := h[i], h[k]
	if (a.err != nil) != (b.err != nil) {
		return a.err != nil
	}
	return cmp.Or(cmp.Compare(a.rec.Done, b.rec.Done), cmp.Compare(a.source, b.source)) < 0
}
func (h *heads) Push(any) { panic("run: heads only shrink") }
func (h *heads) Pop() any {
	last := len(*h) - 1
	*h = (*h)[:last]
	return nil
}

func (m *Merged) samples(yield func(runfile.Sample, error) bool) {
	scraped := false // by a previous part
	for _, part := range m.parts {
		asked := false
		for s, err := range part.Samples {
			s.AtMS += ms(part.later(time.Duration(s.AtMS * float64(time.Millisecond))))
			asked = asked || s.Server != nil || s.ServerError != ""
			if scraped {
				s.Server, s.ServerError = nil, ""
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
		scraped = scraped || asked
	}
}

// move turns records of a part into records of the whole run.
type move struct {
	clock   runfile.Clock
	started time.Time     // by the clock
	apart   time.Duration // from the start of the run, by the reference clock, to started
	rows    int           // added to row numbers
	targets int           // added to server indexes
	prompts uint64        // mixed into block ids
}

func movesOf(parts []Part, start time.Time) []move {
	var moves []move
	rows, servers := 0, 0
	targets, prompts := map[string]int{}, map[string]uint64{}
	for i := range parts {
		run := &parts[i].Run
		if _, known := targets[run.Target.URL]; !known {
			targets[run.Target.URL] = servers
			servers += max(len(strings.Fields(run.Target.URL)), 1)
		}
		kind := fmt.Sprint(run.Seed, " ", run.Salt, " ", run.Target.Prompt, " ", run.Trace.BlockSize)
		if _, known := prompts[kind]; !known {
			prompts[kind] = uint64(len(prompts)) * 0x9e3779b97f4a7c15
		}
		moves = append(moves, move{run.Part.Clock, run.Started, run.Started.Sub(start), rows, targets[run.Target.URL], prompts[kind]})
		if run.Part.Of == 0 {
			rows += max(run.Rows, 0)
		}
	}
	return moves
}

// startOf returns the agreed start of the parts or, if there is none, the first
// start.
func startOf(parts []Part) time.Time {
	if agreed := parts[0].Run.Part.Start; !agreed.IsZero() {
		return agreed
	}
	first := slices.MinFunc(parts, func(a, b Part) int { return a.Run.Started.Compare(b.Run.Started) })
	return first.Run.Started
}

// startedAt and endOf return when a part started and ended, by the reference clock.
func startedAt(r *runfile.Run) time.Time { return r.Part.Clock.ToReference(r.Started) }

func endOf(r *runfile.Run) time.Time {
	if r.Ended.IsZero() {
		return time.Time{}
	}
	return r.Part.Clock.ToReference(r.Ended)
}

// name returns the part's name in messages.
func (p *Part) name() string {
	place := p.Run.Part
	switch {
	case place.Of == 0:
		return p.Name
	case place.Host == "":
		return fmt.Sprintf("part %d of %d", place.Number, place.Of)
	}
	return fmt.Sprintf("part %d of %d (%s)", place.Number, place.Of, place.Host)
}

// lastInstant returns the latest known instant of the part, by its clock.
func (p *Part) lastInstant() time.Time {
	if p.Run.Ended.IsZero() {
		return p.Run.Started.Add(time.Duration(min(p.Run.Trace.DurationMS, ms(replay.MaxWait)) * float64(time.Millisecond)))
	}
	return p.Run.Ended
}

// later returns what to add to a time of the part.
func (m *move) later(at time.Duration) time.Duration {
	return m.apart + m.clock.Offset(m.started.Add(at))
}

// time moves the times of a record by the offset at the time when it was sent.
func (m *move) time(rec *replay.Record) {
	at := rec.Done
	if rec.Sent.Set {
		at = rec.Sent.Value
	}
	later := m.later(at)
	rec.Due, rec.Ready, rec.Done = rec.Due+later, rec.Ready+later, rec.Done+later
	for _, at := range []*replay.Instant{&rec.Sent, &rec.First, &rec.FirstVisible, &rec.Last} {
		if at.Set {
			at.Value += later
		}
	}
}

func (m *move) number(rec *replay.Record) {
	if m.rows > 0 { // the same session of a trace is another one in another part
		rename := func(id string) string { return strconv.Itoa(m.rows) + "/" + id }
		if rec.SessionID != "" {
			rec.SessionID = rename(rec.SessionID)
		}
		if rec.ID != "" {
			rec.ID = rename(rec.ID)
		}
		for i, id := range rec.After {
			rec.After[i] = rename(id)
		}
	}
	rec.Row += m.rows
	if rec.Base.Row.Set {
		rec.Base.Row.Value += m.rows
	}
	rec.Target += m.targets
	for i := range rec.HashIDs {
		rec.HashIDs[i] ^= m.prompts
	}
}

// mergedRun returns the record of the whole run.
func mergedRun(parts []Part, start time.Time) runfile.Run {
	run := parts[0].Run
	run.Part = runfile.Part{}
	run.Started, run.Ended = start, endOf(&parts[0].Run)
	run.Notes = append([]string{partsNote(parts)}, run.Notes...)
	for _, part := range parts[1:] {
		addPart(&run, &part.Run)
	}
	if len(parts) > 1 {
		run.Prompts, run.Calibrated = "", nil
	}
	if whole := parts[0].Run.Part; whole.Of > 0 {
		run.Rows, run.LostTurns = whole.RunRows, parts[0].Run.LostTurns
	} else if len(parts) > 1 {
		run.Schedule = ""
	}
	return run
}

func partsNote(parts []Part) string {
	if of := parts[0].Run.Part.Of; of > 0 {
		return fmt.Sprintf("%d processes drove the run, dealt by %s: see its parts", of, parts[0].Run.Part.By)
	}
	return fmt.Sprintf("merged from %d runs, whose clocks are taken to agree", len(parts))
}

// addPart adds the counts of a part.
func addPart(run, other *runfile.Run) {
	if ended := endOf(other); run.Ended.IsZero() || other.Ended.IsZero() {
		run.Ended = time.Time{}
	} else if ended.After(run.Ended) {
		run.Ended = ended
	}
	run.Rows, run.Sent, run.NotSent = run.Rows+other.Rows, run.Sent+other.Sent, run.NotSent+other.NotSent
	run.Skipped, run.Warmup = run.Skipped+other.Skipped, run.Warmup+other.Warmup
	run.Cut, run.LostTurns = run.Cut+other.Cut, run.LostTurns+other.LostTurns
	run.Outgrown, run.Unfinished = run.Outgrown+other.Outgrown, run.Unfinished+other.Unfinished
	run.Stopped, run.TimeUp = run.Stopped || other.Stopped, run.TimeUp || other.TimeUp
	if other.Rows > 0 || other.Part.Of == 0 { // a part without a share of a limit sends nothing
		run.Limits.MaxConcurrency = addLimits(run.Limits.MaxConcurrency, other.Limits.MaxConcurrency)
		run.Limits.MaxSessions = addLimits(run.Limits.MaxSessions, other.Limits.MaxSessions)
	}
	run.Failure = cmp.Or(run.Failure, other.Failure)
	d, e := &run.ReadDelay, other.ReadDelay
	d.Reads, d.MedianMS, d.P99MS, d.MaxMS = d.Reads+e.Reads, max(d.MedianMS, e.MedianMS), max(d.P99MS, e.P99MS), max(d.MaxMS, e.MaxMS)
	m, n := &run.Merges, other.Merges
	m.Chunks, m.Merged, m.P99MS, m.MaxMS = m.Chunks+n.Chunks, m.Merged+n.Merged, max(m.P99MS, n.P99MS), max(m.MaxMS, n.MaxMS)
	run.Resumed = append(slices.Clip(run.Resumed), other.Resumed...)
	for _, note := range other.Notes {
		if !slices.Contains(run.Notes, note) {
			run.Notes = append(run.Notes, note)
		}
	}
}

// addLimits returns the limit of two parts together; 0 is none.
func addLimits(a, b int) int {
	if a == 0 || b == 0 {
		return 0
	}
	return a + b
}
