package bench_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/bench"
	"moontide/replay/cluster"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/trace"
)

// recordsOf returns the records of a run by row.
func recordsOf(t *testing.T, dirs ...string) map[int]replay.Record {
	t.Helper()
	recording, err := bench.OpenRecording(dirs...)
	if err != nil {
		t.Fatal(err)
	}
	defer recording.Close()
	all := map[int]replay.Record{}
	for rec, err := range recording.Records {
		if err != nil {
			t.Fatal(err)
		}
		all[rec.Row] = rec
	}
	return all
}

// Clocks that are wrong by 250 ms and 3 s, and one that drifts by 100 ppm, change no
// latency of the merged run, and its instants by no more than the bound of the clocks.
func TestSkewedPartsAreOneRun(t *testing.T) {
	t.Parallel()
	url, stop := fastEndpoint()
	defer stop()
	skews := []struct {
		offset time.Duration
		drift  float64
	}{{0, 0}, {250 * time.Millisecond, 0}, {-3 * time.Second, 0}, {0, 100e-6}}
	starts := make([]func() replay.Status, len(skews))
	results, errs := runMembers(t, len(skews), func(c *cluster.Config) {
		begun, skew := time.Now(), skews[c.Number-1]
		c.Clock = func() time.Time {
			passed := time.Since(begun)
			return begun.Round(0).Add(skew.offset + passed + time.Duration(skew.drift*float64(passed)))
		}
	}, func(number int) bench.Config {
		rows := sharedRows(40)
		for i := range rows {
			rows[i].Timestamp = trace.Some(float64(10 * i))
		}
		cfg := bench.Config{Trace: bench.Trace{Requests: trace.FromSlice(rows), BlockSize: 16}, Client: openai.Config{URL: url}}
		cfg.Observer.Start = func(s bench.Started) { starts[number-1] = s.Status }
		return cfg
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	dir := results[0].Dir
	parts, err := runfile.ReadParts(dir)
	if err != nil {
		t.Fatal(err)
	}
	merged, truth := recordsOf(t, dir), []replay.Record{} // by the clock that all have here, from the start of part 1
	// The merged run begins at the agreed start, and part 1 microseconds after it.
	allowed, late := time.Duration(0), time.Duration(0)
	for i, folder := range parts.Folders(dir) {
		p := results[0].Metrics.Parts[i]
		bound := time.Duration(p.BoundMS.Value * float64(time.Millisecond))
		for _, rec := range recordsOf(t, folder) {
			if i == 0 {
				late = merged[rec.Row].Sent.Value - rec.Sent.Value
			}
			later := starts[i]().Start.Sub(starts[0]().Start)
			true1 := rec.Sent.Value + later + late
			// The runner of the part that drifts does not drift here, from when it learns
			// the start on.
			most := bound + time.Duration(skews[i].drift*float64(rec.Sent.Value+time.Second)) + time.Microsecond
			m := merged[rec.Row]
			if off := (m.Sent.Value - true1).Abs(); off > most {
				t.Errorf("row %d of part %d is off by %v, more than %v", rec.Row, i+1, off, most)
			}
			if m.First.Value-m.Sent.Value != rec.First.Value-rec.Sent.Value {
				t.Errorf("row %d has TTFT %v, its part %v", rec.Row, m.First.Value-m.Sent.Value, rec.First.Value-rec.Sent.Value)
			}
			rec.Sent.Value, allowed = true1, max(allowed, most)
			truth = append(truth, rec)
		}
	}
	slices.SortFunc(truth, func(a, b replay.Record) int { return cmp.Compare(a.Sent.Value, b.Sent.Value) })
	for i := range truth[1:] {
		a, b := truth[i], truth[i+1]
		if b.Sent.Value-a.Sent.Value > 2*allowed && merged[a.Row].Sent.Value >= merged[b.Row].Sent.Value {
			t.Errorf("rows %d and %d are in the wrong order", a.Row, b.Row)
		}
	}
	if len(truth) != 40 || len(merged) != 40 {
		t.Errorf("%d and %d records", len(truth), len(merged))
	}
}

// Parts that share a server's cache predict its hits together: as many as a single run,
// without an alarm of a warm cache. They have one schedule, with arrivals drawn once.
func TestPartsShareCacheAndSchedule(t *testing.T) {
	t.Parallel()
	measured := func(n int) (*bench.Result, map[int]replay.Record) {
		url, stop := fastEndpoint() // with an empty cache
		defer stop()
		config := func(int) bench.Config {
			return bench.Config{
				Trace: bench.Trace{Path: "../../traces/conversation.jsonl"}, Client: openai.Config{URL: url}, ServerBlockSize: 16, Seed: 5,
				Pacing: trace.Pacing{Limit: 60, Arrivals: &trace.Arrivals{Distribution: trace.Poisson, Rate: 200, Burstiness: 1}},
			}
		}
		if n == 1 {
			cfg := config(1)
			cfg.Dir = t.TempDir()
			single, err := bench.Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			return single, recordsOf(t, single.Dir)
		}
		results, errs := runParts(t, n, config)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return results[0], recordsOf(t, results[0].Dir)
	}
	single, dues := measured(1)
	parts, partDues := measured(4)
	want, got := single.Metrics.Cache.Prediction, parts.Metrics.Cache.Prediction
	if want.Predicted == 0 || got.Predicted != want.Predicted {
		t.Errorf("parts predict %d cached tokens, a single run %d", got.Predicted, want.Predicted)
	}
	if warm := got.Causes[run.Warm]; warm.Requests > 0 {
		t.Errorf("the cache is said to be warm for %d requests", warm.Requests)
	}
	for _, e := range parts.Metrics.Verdict.Evidence {
		if strings.Contains(e.Text, "warm cache") {
			t.Errorf("the verdict says: %s", e.Text)
		}
	}
	bound := 0.0
	for _, p := range parts.Metrics.Parts {
		bound = max(bound, p.BoundMS.Value)
	}
	begun := map[string]bool{} // sessions, whose later turns are due after the earlier ones
	for row := range 60 {
		rec := dues[row]
		if off := (partDues[row].Due - rec.Due).Abs(); !begun[rec.SessionID] && off > time.Duration(bound*float64(time.Millisecond))+time.Microsecond {
			t.Errorf("row %d is due at %v in a part, at %v in a single run", row, partDues[row].Due, rec.Due)
		}
		begun[rec.SessionID] = true
	}
	if len(dues) != 60 || len(partDues) != 60 {
		t.Errorf("%d and %d records", len(dues), len(partDues))
	}
}
