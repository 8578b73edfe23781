package run

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
)

// Part is the recording of a run, before its metrics are computed.
type Part struct {
	Run     runfile.Run
	Records iter.Seq2[replay.Record, error]
	Samples iter.Seq2[runfile.Sample, error]
}

// Merge merges the runs of one test driven by several machines at the same time.
// Every metric is exact if their clocks agree. Rows and targets are numbered
// consecutively, and prompts of runs with different seeds or salts share nothing.
// Read delays are those of the worst machine, server metrics those of the first run
// that has any. Runs that started more than [replay.MaxWait] apart are not parts
// of one test.
func Merge(parts []Part) (Part, error) {
	if len(parts) == 1 {
		return parts[0], nil
	}
	start := startOf(parts)
	for _, part := range parts {
		if apart := part.Run.Started.Sub(start); apart > replay.MaxWait {
			return Part{}, fmt.Errorf("merging runs: one started at %v and another at %v: they are not parts of one test",
				start.Format(time.DateTime), part.Run.Started.Format(time.DateTime))
		}
	}
	moves := movesOf(parts)
	merged := Part{Run: mergedRun(parts)}
	merged.Records = func(yield func(replay.Record, error) bool) {
		for i, part := range parts {
			for rec, err := range part.Records {
				if err == nil {
					moves[i].record(&rec)
				}
				if !yield(rec, err) || err != nil {
					return
				}
			}
		}
	}
	merged.Samples = func(yield func(runfile.Sample, error) bool) {
		scraped := false // by a previous run
		for i, part := range parts {
			asked := false
			for s, err := range part.Samples {
				s.AtMS += ms(moves[i].later)
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
	return merged, nil
}

type move struct {
	later   time.Duration // offset from the run that started first
	rows    int           // added to row numbers
	targets int           // added to server indexes
	prompts uint64        // mixed into block ids
}

func movesOf(parts []Part) []move {
	start := startOf(parts)
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
		moves = append(moves, move{run.Started.Sub(start), rows, targets[run.Target.URL], prompts[kind]})
		rows += max(run.Rows, 0)
	}
	return moves
}

func startOf(parts []Part) time.Time {
	first := slices.MinFunc(parts, func(a, b Part) int { return a.Run.Started.Compare(b.Run.Started) })
	return first.Run.Started
}

func (m move) record(rec *replay.Record) {
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
	rec.Due, rec.Ready, rec.Done = rec.Due+m.later, rec.Ready+m.later, rec.Done+m.later
	for _, at := range []*replay.Instant{&rec.Sent, &rec.First, &rec.FirstVisible, &rec.Last} {
		at.Value += m.later
	}
	for i := range rec.HashIDs {
		rec.HashIDs[i] ^= m.prompts
	}
}

func mergedRun(parts []Part) runfile.Run {
	run := parts[0].Run
	run.Started = startOf(parts)
	run.Notes = []string{fmt.Sprintf("merged from %d runs, whose clocks are taken to agree", len(parts))}
	run.Notes = append(run.Notes, parts[0].Run.Notes...)
	for _, part := range parts[1:] {
		other := part.Run
		if run.Ended.IsZero() || other.Ended.IsZero() {
			run.Ended = time.Time{}
		} else if other.Ended.After(run.Ended) {
			run.Ended = other.Ended
		}
		run.Rows, run.Sent, run.NotSent = run.Rows+other.Rows, run.Sent+other.Sent, run.NotSent+other.NotSent
		run.Skipped, run.Warmup = run.Skipped+other.Skipped, run.Warmup+other.Warmup
		run.Cut, run.LostTurns = run.Cut+other.Cut, run.LostTurns+other.LostTurns
		run.Outgrown, run.Unfinished = run.Outgrown+other.Outgrown, run.Unfinished+other.Unfinished
		run.Stopped, run.TimeUp = run.Stopped || other.Stopped, run.TimeUp || other.TimeUp
		run.Limits.MaxConcurrency = addLimits(run.Limits.MaxConcurrency, other.Limits.MaxConcurrency)
		run.Limits.MaxSessions = addLimits(run.Limits.MaxSessions, other.Limits.MaxSessions)
		run.Failure = cmp.Or(run.Failure, other.Failure)
		d, e := &run.ReadDelay, other.ReadDelay
		d.Reads, d.MedianMS, d.P99MS, d.MaxMS = d.Reads+e.Reads, max(d.MedianMS, e.MedianMS), max(d.P99MS, e.P99MS), max(d.MaxMS, e.MaxMS)
		m, n := &run.Merges, other.Merges
		m.Chunks, m.Merged, m.P99MS, m.MaxMS = m.Chunks+n.Chunks, m.Merged+n.Merged, max(m.P99MS, n.P99MS), max(m.MaxMS, n.MaxMS)
		run.AddEchoed(other.Echoed)
		run.Calibrated = nil
		for _, note := range other.Notes {
			if !slices.Contains(run.Notes, note) {
				run.Notes = append(run.Notes, note)
			}
		}
	}
	return run
}

// differences returns the settings that differ but must not.
func differences(parts []Part) (notes []string) {
	for _, thing := range []struct {
		name string
		of   func(r *runfile.Run) string
	}{
		{"versions of moontide", func(r *runfile.Run) string { return r.Version }},
		{"models", func(r *runfile.Run) string { return r.Target.ModelText() }},
		{"endpoints", func(r *runfile.Run) string { return r.Target.Endpoint }},
		{"prompts", func(r *runfile.Run) string { return r.Target.Prompt }},
		{"block sizes", func(r *runfile.Run) string { return fmt.Sprint(r.Trace.BlockSize) }},
		{"speedups", func(r *runfile.Run) string { return fmt.Sprint(r.Trace.Speedup) }},
	} {
		var all []string
		for i := range parts {
			if s := thing.of(&parts[i].Run); !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		if len(all) > 1 {
			notes = append(notes, fmt.Sprintf("the runs differ in their %s: %s; merge runs with the same settings", thing.name, strings.Join(all, ", ")))
		}
	}
	return notes
}

// addLimits returns the limit of two parts together; 0 is none.
func addLimits(a, b int) int {
	if a == 0 || b == 0 {
		return 0
	}
	return a + b
}
