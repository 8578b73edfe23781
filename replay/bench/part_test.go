package bench_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"moontide/analyze/run"
	"moontide/replay/bench"
	"moontide/replay/cluster"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/trace"
)

// runParts replays a trace as parts of one run and returns their results.
func runParts(t *testing.T, n int, config func(number int) bench.Config) (results []*bench.Result, errs []error) {
	t.Helper()
	return runMembers(t, n, func(*cluster.Config) {}, config)
}

// runMembers is runParts with a change of how the parts meet.
func runMembers(t *testing.T, n int, change func(c *cluster.Config), config func(number int) bench.Config) (results []*bench.Result, errs []error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	results, errs = make([]*bench.Result, n), make([]error, n)
	var parts sync.WaitGroup
	for i := range n {
		parts.Go(func() {
			place := cluster.Config{Number: i + 1, Of: n, Dir: dir, OneMachine: true, Timeout: 20 * time.Second}
			change(&place)
			m, err := cluster.Join(t.Context(), place)
			if errs[i] = err; err != nil {
				return
			}
			cfg := config(i + 1)
			cfg.Member, cfg.Dir = m, m.Dir
			results[i], errs[i] = bench.Run(t.Context(), cfg)
			m.Close(errs[i])
		})
	}
	parts.Wait()
	return results, errs
}

// shared returns requests of sessions, of which several begin with the same block.
func sharedRows(n int) (all []trace.Request) {
	for i := range n {
		all = append(all, trace.Request{
			Timestamp: trace.Some(float64(i)), InputLength: 40, OutputLength: 2,
			HashIDs: []uint64{uint64(i % 2), uint64(100 + i%5), uint64(1000 + i)},
		})
	}
	return all
}

// The parts send the requests of one run, each once, and their report is that of all.
func TestPartsAreOneRun(t *testing.T) {
	t.Parallel()
	url, stop := fastEndpoint()
	defer stop()
	const n = 24
	config := func(int) bench.Config {
		return bench.Config{Trace: bench.Trace{Requests: trace.FromSlice(sharedRows(n)), BlockSize: 16}, Client: openai.Config{URL: url}, Seed: 7}
	}
	single, err := bench.Run(t.Context(), config(1))
	if err != nil {
		t.Fatal(err)
	}
	results, errs := runParts(t, 3, config)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	whole := results[0]
	if whole.Run.Rows != n || whole.Run.Sent != n || whole.Metrics.Completed != n || whole.Run.Schedule != single.Run.Schedule || whole.Run.Part.Of != 0 {
		t.Errorf("the whole run: %d rows, %d sent, %d completed, part %+v", whole.Run.Rows, whole.Run.Sent, whole.Metrics.Completed, whole.Run.Part)
	}
	for _, e := range whole.Metrics.Verdict.Evidence {
		if e.Check == "parts" && !strings.Contains(e.Text, "by itself") { // on a busy machine
			t.Errorf("the verdict says: %s", e.Text)
		}
	}
	parts, err := runfile.ReadParts(whole.Dir)
	if err != nil || parts.Ended.IsZero() || parts.Rows != n {
		t.Errorf("parts.json: %+v, %v", parts, err)
	}
	seen := map[int]int{}
	for _, p := range parts.Parts {
		if p.State != runfile.PartEnded || p.Folder == "" {
			t.Errorf("part %+v", p)
		}
	}
	for _, dir := range parts.Folders(whole.Dir) {
		folder, err := runfile.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for rec, err := range folder.Records() {
			if err != nil {
				t.Fatal(err)
			}
			if rec.HashIDs[2] != uint64(1000+rec.Row) {
				t.Errorf("row %d of %s is that of block %d", rec.Row, dir, rec.HashIDs[2])
			}
			seen[rec.Row]++
			rows++
		}
		if rows != n/3 || folder.Run.Rows != rows || folder.Run.Part.RunRows != n {
			t.Errorf("%s has %d records, %d rows of %d", dir, rows, folder.Run.Rows, folder.Run.Part.RunRows)
		}
		folder.Close()
	}
	for row := range n {
		if seen[row] != 1 {
			t.Errorf("row %d was sent %d times", row, seen[row])
		}
	}
}

// Without a part, the report of the others is INVALID and names it.
func TestReportWithoutAPart(t *testing.T) {
	t.Parallel()
	url, stop := fastEndpoint()
	defer stop()
	results, errs := runParts(t, 3, func(int) bench.Config {
		return bench.Config{Trace: bench.Trace{Requests: trace.FromSlice(rows(9, 1))}, Client: openai.Config{URL: url}}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	dir := results[0].Dir
	two, err := bench.Measure(bench.MeasureConfig{}, filepath.Join(dir, "part-1"), filepath.Join(dir, "part-3"))
	if err != nil {
		t.Fatal(err)
	}
	if v := two.Metrics.Verdict; v.Level != run.Invalid || !strings.Contains(fmt.Sprint(v.Reasons()), "part 2 of 3 is missing") {
		t.Errorf("without part 2: %v %q", v.Level, v.Reasons())
	}
	moved, err := bench.Measure(bench.MeasureConfig{}, filepath.Join(dir, "part-1"))
	if err != nil || moved.Run.Part.Of != 3 {
		t.Errorf("a part alone: %+v, %v", moved.Run.Part, err)
	}
}

// A trace that cannot be dealt ends the run of all.
func TestPartsThatCannotRun(t *testing.T) {
	t.Parallel()
	url, stop := fastEndpoint()
	defer stop()
	_, errs := runParts(t, 2, func(int) bench.Config {
		return bench.Config{Trace: bench.Trace{Requests: trace.FromSlice(rows(1, 1))}, Client: openai.Config{URL: url}}
	})
	for i, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "to deal to 2 parts") {
			t.Errorf("part %d: %v", i+1, err)
		}
	}
}

// Parts beyond a limit of the run send nothing, and the limits add up to that of the run.
func TestPartsWithoutAShare(t *testing.T) {
	t.Parallel()
	url, stop := fastEndpoint()
	defer stop()
	results, errs := runParts(t, 4, func(int) bench.Config {
		return bench.Config{Trace: bench.Trace{Requests: trace.FromSlice(sharedRows(20)), BlockSize: 16}, Client: openai.Config{URL: url}, MaxConcurrency: 2, Closed: true, WarmupRequests: 3}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	whole := results[0]
	if n := whole.Run.Limits.MaxConcurrency; n != 2 || whole.Metrics.PeakConcurrency > 2 || whole.Run.Warmup != 3 || whole.Metrics.Completed != 20 {
		t.Errorf("limit %d, peak %d, %d warm-up requests, %d completed", n, whole.Metrics.PeakConcurrency, whole.Run.Warmup, whole.Metrics.Completed)
	}
	for i, p := range whole.Metrics.Parts {
		if want := []int{10, 10, 0, 0}[i]; p.Run.Rows != want || p.Run.Sent != want {
			t.Errorf("%s sent %d of %d requests, want %d", p.Name, p.Run.Sent, p.Run.Rows, want)
		}
	}
}
