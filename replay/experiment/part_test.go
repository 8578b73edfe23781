package experiment_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/cluster"
	"moontide/replay/experiment"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/trace"
)

// runParts replays a trace as parts of one run and returns their results.
func runParts(t *testing.T, n int, config func(number int) experiment.Config) (results []*experiment.Result, errs []error) {
	t.Helper()
	return runMembers(t, n, func(*cluster.Config) {}, config)
}

// runMembers is runParts with a change of how the parts meet.
func runMembers(t *testing.T, n int, change func(c *cluster.Config), config func(number int) experiment.Config) (results []*experiment.Result, errs []error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	results, errs = make([]*experiment.Result, n), make([]error, n)
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
			cfg.Part, cfg.Output.Dir = m, m.Dir
			results[i], errs[i] = experiment.Run(t.Context(), cfg)
			m.Close(errs[i])
		})
	}
	parts.Wait()
	return results, errs
}

// sharedRows returns requests of sessions. Several sessions begin with the same block.
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
	url := served(t)
	const n = 24
	config := func(int) experiment.Config {
		return experiment.Config{Requests: trace.FromSlice(sharedRows(n)), Settings: settings.Settings{Trace: settings.Trace{BlockSize: 16}, Client: openai.Config{URLs: []string{url}}, Seed: 7}}
	}
	single, err := experiment.Run(t.Context(), config(1))
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
	url := served(t)
	results, errs := runParts(t, 3, func(int) experiment.Config {
		return experiment.Config{Requests: trace.FromSlice(rows(9, 1)), Settings: settings.Settings{Client: openai.Config{URLs: []string{url}}}}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	dir := results[0].Dir
	if err := os.RemoveAll(filepath.Join(dir, "part-2")); err != nil {
		t.Fatal(err)
	}
	two, err := experiment.Measure(experiment.MeasureConfig{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if v := two.Metrics.Verdict; v.Level != measure.Invalid || !strings.Contains(fmt.Sprint(v.Reasons()), "part 2 of 3 is missing") {
		t.Errorf("without part 2: %v %q", v.Level, v.Reasons())
	}
	moved, err := experiment.Measure(experiment.MeasureConfig{}, filepath.Join(dir, "part-1"))
	if err != nil || moved.Run.Part.Of != 3 {
		t.Errorf("a part alone: %+v, %v", moved.Run.Part, err)
	}
}

// A trace that cannot be dealt ends the run of all.
func TestPartsThatCannotRun(t *testing.T) {
	t.Parallel()
	url := served(t)
	_, errs := runParts(t, 2, func(int) experiment.Config {
		return experiment.Config{Requests: trace.FromSlice(rows(1, 1)), Settings: settings.Settings{Client: openai.Config{URLs: []string{url}}}}
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
	url := served(t)
	results, errs := runParts(t, 4, func(int) experiment.Config {
		return experiment.Config{Requests: trace.FromSlice(sharedRows(20)), Settings: settings.Settings{Trace: settings.Trace{BlockSize: 16}, Client: openai.Config{URLs: []string{url}}, MaxConcurrency: 2, Closed: true, WarmupRequests: 3}}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	whole := results[0]
	if n := whole.Run.MaxConcurrency(); n != 2 || whole.Metrics.PeakConcurrency > 2 || whole.Run.Warmup != 3 || whole.Metrics.Completed != 20 {
		t.Errorf("limit %d, peak %d, %d warm-up requests, %d completed", n, whole.Metrics.PeakConcurrency, whole.Run.Warmup, whole.Metrics.Completed)
	}
	for i, p := range whole.Metrics.Parts {
		if want := []int{10, 10, 0, 0}[i]; p.Run.Rows != want || p.Run.Sent != want {
			t.Errorf("%s sent %d of %d requests, want %d", p.Name, p.Run.Sent, p.Run.Rows, want)
		}
	}
}

// recordsOf returns the records of a run by row.
func recordsOf(t *testing.T, dir string) map[int]replay.Record {
	t.Helper()
	recording, err := experiment.OpenRecording(dir)
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
	url := served(t)
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
	}, func(number int) experiment.Config {
		rows := sharedRows(40)
		for i := range rows {
			rows[i].Timestamp = trace.Some(float64(10 * i))
		}
		cfg := experiment.Config{Requests: trace.FromSlice(rows), Settings: settings.Settings{Trace: settings.Trace{BlockSize: 16}, Client: openai.Config{URLs: []string{url}}}}
		cfg.Observer.Start = func(s experiment.Started) { starts[number-1] = s.Status }
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
	merged := recordsOf(t, dir)
	late := time.Duration(0) // the merged run begins at the agreed start, and part 1 microseconds after it
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
		}
	}
	if len(merged) != 40 {
		t.Errorf("%d records", len(merged))
	}
}

// Parts that share a server's cache predict its hits together: as many as a single run,
// without an alarm of a warm cache. They have one schedule, with arrivals drawn once.
func TestPartsShareCacheAndSchedule(t *testing.T) {
	t.Parallel()
	measured := func(n int) (*experiment.Result, map[int]replay.Record) {
		url := served(t)
		config := func(int) experiment.Config {
			return experiment.Config{Settings: settings.Settings{
				Trace: settings.Trace{Path: conversations}, Client: openai.Config{URLs: []string{url}}, ServerBlockSize: 16, Seed: 5,
				Pacing: settings.Pacing{Limit: 60, Rate: trace.Some(200.0)},
			}}
		}
		if n == 1 {
			cfg := config(1)
			cfg.Output.Dir = t.TempDir()
			single, err := experiment.Run(t.Context(), cfg)
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
	if warm := got.Causes[measure.Warm]; warm.Requests > 0 {
		t.Errorf("the cache is said to be warm for %d requests", warm.Requests)
	}
	if len(dues) != 60 || len(partDues) != 60 || single.Run.Schedule != parts.Run.Schedule {
		t.Errorf("%d and %d records, schedules %s and %s", len(dues), len(partDues), single.Run.Schedule, parts.Run.Schedule)
	}
}

// Parts that were interrupted go on together: every row is sent once, also those of a
// part whose folder is lost, and rows that were not due yet keep their distances.
func TestPartsResumeTogether(t *testing.T) {
	t.Parallel()
	const n, rows, gap = 3, 60, 30 // ms: of 1.8 s, 0.4 s pass before the interrupt
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost=%v", lost), func(t *testing.T) {
			t.Parallel()
			url := served(t)
			dir := filepath.Join(t.TempDir(), "run")
			run := func(resume bool, interrupt chan struct{}) ([]*experiment.Result, []error) {
				return runMembers(t, n, func(c *cluster.Config) { c.Dir = dir }, func(number int) experiment.Config {
					all := sharedRows(rows)
					for i := range all {
						all[i].Timestamp = trace.Some(float64(gap * i))
					}
					cfg := experiment.Config{Requests: trace.FromSlice(all), Settings: settings.Settings{Trace: settings.Trace{BlockSize: 16}, Client: openai.Config{URLs: []string{url}}}}
					_, err := os.Stat(filepath.Join(dir, "part-3"))
					if cfg.Resume = resume && (number != 3 || err == nil); number != 2 {
						return cfg
					}
					records, once := 0, sync.OnceFunc(func() { close(interrupt) })
					cfg.Drain = interrupt
					cfg.Observer.Record = func(replay.Record) {
						if records++; records == 5 && interrupt != nil {
							once()
						}
					}
					return cfg
				})
			}
			first, errs := run(false, make(chan struct{}))
			if first[0] != nil && first[0].Run.Sent == rows {
				t.Skip("all rows were sent before the interrupt: the machine is busy")
			}
			for i, err := range errs {
				var ended *cluster.EndedError
				if interrupted := i+1 == 2; interrupted && !errors.Is(err, experiment.ErrStopped) || !interrupted && !(errors.As(err, &ended) && ended.Resumable) {
					t.Fatalf("part %d, after part 2 was interrupted: %v", i+1, err)
				}
			}
			before := recordsOf(t, dir)
			if first[0].Run.Sent >= rows || len(before) != first[0].Run.Sent {
				t.Fatalf("%d of %d rows were sent before the interrupt", first[0].Run.Sent, rows)
			}
			last := 0 // row before the interrupt
			for row := range before {
				last = max(last, row)
			}
			if lost {
				if err := os.RemoveAll(filepath.Join(dir, "part-3")); err != nil {
					t.Fatal(err)
				}
			}
			results, errs := run(true, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			whole, after := results[0], recordsOf(t, dir)
			if len(after) != rows || whole.Run.Sent != rows || whole.Run.Stopped || len(whole.Metrics.PartFaults) > 0 || whole.Metrics.Completed != rows {
				t.Errorf("%d records of %d rows, %d sent, stopped %v, faults %v", len(after), rows, whole.Run.Sent, whole.Run.Stopped, whole.Metrics.PartFaults)
			}
			for row := last + 2; row < rows; row++ {
				// The clocks of two parts differ by as much as they say.
				most := time.Millisecond + time.Duration((whole.Metrics.Parts[row%n].BoundMS.Value+whole.Metrics.Parts[(row-1)%n].BoundMS.Value)*float64(time.Millisecond))
				if apart := after[row].Due - after[row-1].Due; (apart - gap*time.Millisecond).Abs() > most {
					t.Errorf("rows %d and %d are due %v apart", row-1, row, apart)
				}
			}
			_, errs = run(true, nil)
			for i, err := range errs {
				if err == nil || !strings.Contains(err.Error(), "nothing to resume") {
					t.Errorf("part %d, complete: %v", i+1, err)
				}
			}
		})
	}
}
