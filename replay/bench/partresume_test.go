package bench_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/bench"
	"moontide/replay/cluster"
	"moontide/replay/openai"
	"moontide/trace"
)

// Parts that were interrupted go on together: every row is sent once, also those of a
// part whose folder is lost, and rows that were not due yet keep their distances.
func TestPartsResumeTogether(t *testing.T) {
	t.Parallel()
	const n, rows = 3, 60 // of 0.6 s, of which 0.2 s pass before the interrupt
	for _, lost := range []bool{false, true} {
		url, stop := fastEndpoint()
		defer stop()
		dir := filepath.Join(t.TempDir(), "run")
		run := func(resume bool, interrupt chan struct{}) ([]*bench.Result, []error) {
			return runMembers(t, n, func(c *cluster.Config) { c.Dir = dir }, func(number int) bench.Config {
				all := sharedRows(rows)
				for i := range all {
					all[i].Timestamp = trace.Some(float64(10 * i))
				}
				cfg := bench.Config{Trace: bench.Trace{Requests: trace.FromSlice(all), BlockSize: 16}, Client: openai.Config{URL: url}}
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
		for i, err := range errs {
			var ended *cluster.EndedError
			if interrupted := i+1 == 2; interrupted && !errors.Is(err, bench.ErrStopped) || !interrupted && !(errors.As(err, &ended) && ended.Resumable) {
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
			t.Errorf("lost %v: %d records of %d rows, %d sent, stopped %v, faults %v", lost, len(after), rows, whole.Run.Sent, whole.Run.Stopped, whole.Metrics.PartFaults)
		}
		for row := last + 2; row < rows; row++ {
			if apart := after[row].Due - after[row-1].Due; (apart - 10*time.Millisecond).Abs() > time.Millisecond {
				t.Errorf("lost %v: rows %d and %d are due %v apart", lost, row-1, row, apart)
			}
		}
		_, errs = run(true, nil)
		for i, err := range errs {
			if err == nil || !strings.Contains(err.Error(), "nothing to resume") {
				t.Errorf("part %d, complete: %v", i+1, err)
			}
		}
	}
}
