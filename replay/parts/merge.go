// Package parts merges the recordings of a run that several processes made.
//
// [Merge] takes the recording of each part and returns that of the whole run:
//
//	merged, err := parts.Merge(recordings, &known)
//	...
//	for rec, err := range merged.Records { ... }
//
// Times are moved to the clock of the whole run by the offsets that the parts measured.
// Faults says why the parts are not one complete run.
package parts

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
)

// Part is the recording of a run or of one part of it.
type Part struct {
	Name    string // of a part, in messages: its folder
	Run     runfile.Run
	Records iter.Seq2[replay.Record, error]
	Samples iter.Seq2[runfile.Sample, error]
}

// Merged is the recording of a run that several processes drove.
type Merged struct {
	Part            // the whole run
	Parts  []Part   // by number
	Faults []string // reasons why they are not all parts of one complete run
	parts  []*mergedPart
	latest int
}

// mergedPart is one of the parts.
type mergedPart struct {
	Part
	apart   time.Duration // from the run's start to the part's, by the reference clock and its own
	targets int           // added to server indexes
}

// Merge merges the recordings of the parts of a run, in the order in which requests ended,
// with a few records of each part in memory. known are the parts known to the leader, nil
// if unknown. The first part must be one of a run of several processes.
//
// Merge moves each record to the clock of the whole run; durations remain those of the
// part's clock. Read delays are those of the worst machine, server metrics those of the
// first part that has any. Parts that started more than [replay.MaxWait] apart are not
// parts of one run.
func Merge(parts []Part, known *runfile.Parts) (*Merged, error) {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(a.Run.Part.Number, b.Run.Part.Number) })
	if parts[0].Run.Part.Of == 0 {
		return nil, fmt.Errorf("merging runs: %s is not a part of a run of several processes", parts[0].Name)
	}
	start := parts[0].Run.Part.Start
	m := &Merged{Parts: parts, Faults: slices.Concat(differences(parts), partNumbers(parts, known), interrupted(parts))}
	if len(m.Faults) == 0 && known != nil && known.Ended.IsZero() {
		m.Faults = []string{fmt.Sprintf("the end of the run is not in %s: part 1 was killed, or could not write it", runfile.PartsFile)}
	}
	for _, part := range parts {
		if apart := part.Run.Part.Clock.ToReference(part.Run.Started).Sub(start); apart.Abs() > replay.MaxWait {
			return nil, fmt.Errorf("merging runs: one started at %v and the run at %v: they are not parts of one run",
				part.Run.Started.Format(time.DateTime), start.Format(time.DateTime))
		}
		m.parts = append(m.parts, &mergedPart{Part: part, apart: part.Run.Started.Sub(start)})
	}
	m.addTargets()
	m.Run, m.Records, m.Samples = mergedRun(parts, start), m.records, m.samples
	return m, nil
}

// addTargets numbers the servers of parts that were sent to different ones.
func (m *Merged) addTargets() {
	first, servers := map[string]int{}, 0
	for _, part := range m.parts {
		url := part.Run.Target.URL
		if _, known := first[url]; !known {
			first[url] = servers
			servers += max(len(strings.Fields(url)), 1)
		}
		part.targets = first[url]
	}
}

// Latest returns the index in Parts of the record that Records yielded last.
func (m *Merged) Latest() int { return m.latest }

// nextRecord is the next record of a part.
type nextRecord struct {
	part int
	rec  replay.Record
	err  error
	next func() (replay.Record, error, bool)
}

func (n *nextRecord) advance() (some bool) {
	n.rec, n.err, some = n.next()
	return some
}

// ended returns when the request ended, the earliest time for an error.
func (n *nextRecord) ended() time.Duration {
	if n.err != nil {
		return math.MinInt64
	}
	return n.rec.Done
}

// records merges the records by the time at which their requests ended, errors first.
func (m *Merged) records(yield func(replay.Record, error) bool) {
	var heads []*nextRecord
	for i, part := range m.parts {
		next, stop := iter.Pull2(part.moved)
		defer stop()
		if head := (&nextRecord{part: i, next: next}); head.advance() {
			heads = append(heads, head)
		}
	}
	for len(heads) > 0 {
		first := slices.MinFunc(heads, func(a, b *nextRecord) int { return cmp.Compare(a.ended(), b.ended()) })
		m.latest = first.part
		if !yield(first.rec, first.err) || first.err != nil {
			return
		}
		if !first.advance() {
			heads = slices.DeleteFunc(heads, func(head *nextRecord) bool { return head == first })
		}
	}
}

// moved yields the records of a part as records of the whole run.
func (p *mergedPart) moved(yield func(replay.Record, error) bool) {
	for rec, err := range p.Records {
		if err == nil {
			p.time(&rec)
			rec.Target += p.targets
		}
		if !yield(rec, err) {
			return
		}
	}
}

func (m *Merged) samples(yield func(runfile.Sample, error) bool) {
	scraped := false // by a previous part
	for _, part := range m.parts {
		scrapedHere := false
		for s, err := range part.Samples {
			s.AtMS += trace.MS(part.later(time.Duration(s.AtMS * float64(time.Millisecond))))
			scrapedHere = scrapedHere || s.Server != nil || s.ServerError != ""
			if scraped {
				s.Server, s.ServerError = nil, ""
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
		scraped = scraped || scrapedHere
	}
}

// endOf returns the end of a part by the reference clock.
func endOf(r *runfile.Run) time.Time {
	if r.Ended.IsZero() {
		return time.Time{}
	}
	return r.Part.Clock.ToReference(r.Ended)
}

// Label returns the part's name in messages, such as "part 3 of 4 (host)".
func (p *Part) Label() string {
	run := p.Run.Part
	if run.Host == "" {
		return fmt.Sprintf("part %d of %d", run.Number, run.Of)
	}
	return fmt.Sprintf("part %d of %d (%s)", run.Number, run.Of, run.Host)
}

// LastInstant returns the latest known instant of the part, by its clock.
func (p *Part) LastInstant() time.Time {
	if p.Run.Ended.IsZero() {
		return p.Run.Started.Add(time.Duration(min(p.Run.Trace.DurationMS, trace.MS(replay.MaxWait)) * float64(time.Millisecond)))
	}
	return p.Run.Ended
}

// later returns the offset to add to a time of the part.
func (p *mergedPart) later(at time.Duration) time.Duration {
	return p.apart + p.Run.Part.Clock.Offset(p.Run.Started.Add(at))
}

// time moves the times of a record by the offset at its send time.
func (p *mergedPart) time(rec *replay.Record) {
	at := rec.Done
	if rec.Sent.Set {
		at = rec.Sent.Value
	}
	later := p.later(at)
	rec.Due, rec.Ready, rec.Done = rec.Due+later, rec.Ready+later, rec.Done+later
	for _, at := range []*replay.Instant{&rec.Sent, &rec.First, &rec.FirstVisible, &rec.Last} {
		if at.Set {
			at.Value += later
		}
	}
}

// mergedRun returns the record of the whole run.
func mergedRun(parts []Part, start time.Time) runfile.Run {
	run, first := parts[0].Run, parts[0].Run.Part
	run.Part = runfile.Part{}
	run.Started, run.Ended = start, endOf(&parts[0].Run)
	run.Notes = append([]string{fmt.Sprintf("the run was split among %d processes by %s: see its parts", first.Of, first.By)}, run.Notes...)
	for _, part := range parts[1:] {
		addPart(&run, &part.Run)
	}
	if len(parts) > 1 {
		run.Prompts, run.Calibrated = "", nil
	}
	run.Rows, run.LostTurns = first.RunRows, parts[0].Run.LostTurns
	return run
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
