package run

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
)

// Part is a run that is yet to be measured: what run.json says of it, its records
// and its samples.
type Part struct {
	Run     runfile.Run
	Records iter.Seq2[replay.Record, error]
	Samples iter.Seq2[runfile.Sample, error]
}

// Merge makes one run of several that were one test, driven from several machines
// at the same time. It merges records, so every metric of it is exact. The
// instants of a run are moved by when it started, as far as the machines' clocks
// agree. Rows and targets are numbered on from run to run, and prompts of runs
// whose seeds or salts differ share nothing.
//
// What is not in the records is bounded: how late the client read is that of the
// machine where it was worst, and the server's own figures are those that the
// first run has.
func Merge(parts []Part) Part {
	if len(parts) == 1 {
		return parts[0]
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
		scraped := false // one run told of the server
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
	return merged
}

// move is what it takes to make a run a part of another.
type move struct {
	later   time.Duration // than the one that started first
	rows    int           // of the runs before it
	targets int           // of them
	prompts uint64        // mixed into block ids
}

func movesOf(parts []Part) []move {
	start := startOf(parts)
	moves := make([]move, len(parts))
	rows, targets := 0, map[string]int{}
	known := 0
	var prompts []string
	for i, part := range parts {
		run := &part.Run
		m := move{later: run.Started.Sub(start), rows: rows}
		rows += max(run.Rows, 0)
		first, same := targets[run.Target.URL]
		if !same {
			first = known
			targets[run.Target.URL] = first
			known += strings.Count(run.Target.URL, ",") + 1
		}
		m.targets = first
		said := fmt.Sprint(run.Seed, " ", run.Salt, " ", run.Target.Prompt, " ", run.Trace.BlockSize)
		if !slices.Contains(prompts, said) {
			prompts = append(prompts, said)
		}
		m.prompts = uint64(slices.Index(prompts, said)) * 0x9e3779b97f4a7c15
		moves[i] = m
	}
	return moves
}

func startOf(parts []Part) time.Time {
	start := parts[0].Run.Started
	for _, part := range parts {
		if part.Run.Started.Before(start) {
			start = part.Run.Started
		}
	}
	return start
}

func (m move) record(rec *replay.Record) {
	rec.Row += m.rows
	rec.Target += m.targets
	rec.Due, rec.Ready, rec.Done = rec.Due+m.later, rec.Ready+m.later, rec.Done+m.later
	rec.Sent.Value, rec.First.Value, rec.Last.Value = rec.Sent.Value+m.later, rec.First.Value+m.later, rec.Last.Value+m.later
	for i := range rec.HashIDs {
		rec.HashIDs[i] ^= m.prompts
	}
}

// mergedRun is what run.json would say, had one machine driven all of it.
func mergedRun(parts []Part) runfile.Run {
	run := parts[0].Run
	run.Started = startOf(parts)
	run.Notes = []string{fmt.Sprintf("merged from %d runs, whose clocks are taken to agree", len(parts))}
	run.Notes = append(run.Notes, differences(parts)...)
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
		run.Stopped, run.TimeUp = run.Stopped || other.Stopped, run.TimeUp || other.TimeUp
		run.Limits.MaxConcurrency = bothOr0(run.Limits.MaxConcurrency, other.Limits.MaxConcurrency)
		if run.Failure == "" {
			run.Failure = other.Failure
		}
		run.ReadDelay = worseDelay(run.ReadDelay, other.ReadDelay)
		run.Merges = bothMerges(run.Merges, other.Merges)
		run.Calibrated = nil
		for _, note := range other.Notes {
			if !slices.Contains(run.Notes, note) {
				run.Notes = append(run.Notes, note)
			}
		}
	}
	return run
}

// bothOr0 is the sum of limits, of which 0 is none.
func bothOr0(a, b int) int {
	if a == 0 || b == 0 {
		return 0
	}
	return a + b
}

func worseDelay(a, b runfile.ReadDelay) runfile.ReadDelay {
	return runfile.ReadDelay{
		Reads: a.Reads + b.Reads, MedianMS: max(a.MedianMS, b.MedianMS), P99MS: max(a.P99MS, b.P99MS), MaxMS: max(a.MaxMS, b.MaxMS),
	}
}

func bothMerges(a, b runfile.Merges) runfile.Merges {
	return runfile.Merges{
		Chunks: a.Chunks + b.Chunks, Merged: a.Merged + b.Merged, P99MS: max(a.P99MS, b.P99MS), MaxMS: max(a.MaxMS, b.MaxMS),
	}
}

// differences says what runs do not have in common that those of one test have.
func differences(parts []Part) (notes []string) {
	for _, thing := range []struct {
		name string
		of   func(r *runfile.Run) string
	}{
		{"versions of moontide", func(r *runfile.Run) string { return r.Version }},
		{"models", func(r *runfile.Run) string { return r.Target.Model }},
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
			notes = append(notes, fmt.Sprintf("the merged runs differ in their %s: %s", thing.name, strings.Join(all, ", ")))
		}
	}
	return notes
}
