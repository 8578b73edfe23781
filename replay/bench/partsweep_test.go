package bench_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"moontide/analyze/run"
	"moontide/replay/bench"
	"moontide/replay/cluster"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/trace"
)

// parts is the number of parts of the tests' sweeps.
const parts = 3

// inParts calls a function as each part, at the same time, and returns their errors.
func inParts(t *testing.T, dir string, do func(part int, m *cluster.Member) error) []error {
	t.Helper()
	errs := make([]error, parts)
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() {
			m, err := cluster.Join(t.Context(), cluster.Config{Number: i + 1, Of: parts, Dir: dir, OneMachine: true, Timeout: 20 * time.Second})
			if err == nil {
				err = do(i, m)
				m.Close(err)
			}
			errs[i] = err
		})
	}
	all.Wait()
	return errs
}

// sweepParts runs a sweep in parts and returns the runs of part 1 and the numbers of
// runs in which the others took part.
func sweepParts(t *testing.T, url, dir string, levels ...float64) (legs []bench.LegResult, others []int, errs []error) {
	t.Helper()
	others = make([]int, parts)
	errs = inParts(t, dir, func(i int, m *cluster.Member) (err error) {
		cfg := bench.SweepConfig{
			Sweep: bench.Sweep{Axis: bench.Concurrency, Levels: levels, Prompts: 12, Targets: []bench.Target{{URL: url}}},
			Trace: func(bench.Leg) (bench.Trace, error) {
				return bench.Trace{Requests: trace.FromSlice(sharedRows(12)), BlockSize: 16}, nil
			},
			Run: bench.Config{Member: m, Client: openai.Config{URL: url}}, Dir: dir,
		}
		if m.Leads() {
			legs, err = bench.RunSweep(t.Context(), cfg)
		} else {
			others[i], err = bench.FollowSweep(t.Context(), cfg)
		}
		return err
	})
	return legs, others[1:], errs
}

// Part 1 decides on the runs of a sweep, and the others take part: in those that are not
// done yet, with a limit below the number of parts, too.
func TestSweepInParts(t *testing.T) {
	url, stop := fastEndpoint()
	defer stop()
	dir := filepath.Join(t.TempDir(), "sweep")
	for _, test := range []struct {
		levels []float64
		runs   int
	}{{[]float64{2, 6}, 2}, {[]float64{2, 6, 4}, 1}} {
		legs, others, errs := sweepParts(t, url, dir, test.levels...)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if len(legs) != len(test.levels) {
			t.Fatalf("%d runs, want %d", len(legs), len(test.levels))
		}
		for i, leg := range legs {
			if leg.Level != test.levels[i] || leg.Metrics.Completed != 12 || leg.Run.Limits.MaxConcurrency != int(leg.Level) || len(leg.Metrics.Parts) != 3 {
				t.Errorf("%v: %d completed, limit %d, %d parts", leg.Leg, leg.Metrics.Completed, leg.Run.Limits.MaxConcurrency, len(leg.Metrics.Parts))
			}
		}
		repeated := 0 // runs that were INVALID on a busy machine are done again
		for _, leg := range legs {
			if strings.Contains(leg.Dir, "attempt") {
				repeated++
			}
		}
		if others[0] != others[1] || others[0] < test.runs || others[0] > test.runs+repeated {
			t.Errorf("the others took part in %v runs, want %d", others, test.runs)
		}
	}
	if again, err := bench.MeasureSweep(bench.MeasureConfig{}, dir); err != nil || len(again) != 3 {
		t.Errorf("measured again: %d runs, %v", len(again), err)
	}
}

// Part 1 decides on the runs of a search, by the results of all, and the others take part
// in exactly these: with the same load, requests and draw. It goes on after a run that meets
// the objective, and ends after the lowest load that misses it.
func TestSearchInParts(t *testing.T) {
	for objective, want := range map[string][]float64{"mean_ttft<1h": {1, 4}, "mean_ttft<0.000001ms": {1}} {
		conditions, err := run.ParseConditions(objective)
		if err != nil {
			t.Fatal(err)
		}
		url, stop := fastEndpoint()
		dir := filepath.Join(t.TempDir(), "search")
		var found []*bench.FoundLoad
		drawn := make([][]bench.Leg, parts)
		errs := inParts(t, dir, func(i int, m *cluster.Member) (err error) {
			cfg := bench.SweepConfig{
				Sweep: bench.Sweep{Axis: bench.Concurrency, Targets: []bench.Target{{URL: url}}},
				Trace: func(leg bench.Leg) (bench.Trace, error) {
					leg.Repeat = 0
					if !slices.Contains(drawn[i], leg) { // part 1 draws the requests again to measure the run
						drawn[i] = append(drawn[i], leg)
					}
					return bench.Trace{Requests: trace.FromSlice(sharedRows(leg.Prompts)), BlockSize: 16}, nil
				},
				// A busy machine does not make the runs INVALID.
				Run: bench.Config{Member: m, Client: openai.Config{URL: url}, Thresholds: runfile.Thresholds{MaxLagMS: 1e6}}, Dir: dir,
			}
			if !m.Leads() {
				_, err = bench.FollowSweep(t.Context(), cfg)
				return err
			}
			found, err = bench.SearchLoad(t.Context(), bench.LoadSearchConfig{
				SweepConfig: cfg, Gates: []run.Gate{{Condition: conditions[0]}}, Low: 1, High: 6, MinRequests: 30,
			})
			return err
		})
		stop()
		if err := errors.Join(errs...); err != nil || len(found) != 1 {
			t.Fatalf("%s: %d answers, %v", objective, len(found), err)
		}
		var levels []float64
		for _, leg := range found[0].Legs {
			levels = append(levels, leg.Level)
			if got := len(leg.Metrics.Parts); got != parts || leg.Metrics.Completed != leg.Prompts-3*int(leg.Level) {
				t.Errorf("%s: %v has %d parts and %d of %d requests", objective, leg.Leg, got, leg.Metrics.Completed, leg.Prompts)
			}
		}
		if !slices.Equal(levels[:min(len(levels), 2)], want) { // whether more follow depends on the speed of the machine
			t.Errorf("%s: runs at %v, want first %v: %s", objective, levels, want, found[0].Stopped)
		}
		for i := range parts {
			if diff := cmp.Diff(drawn[0], drawn[i]); diff != "" {
				t.Errorf("%s: part 1 runs other legs than part %d (-1 +%[2]d): %s", objective, i+1, diff)
			}
		}
	}
}

// When part 1 fails, the others do not wait for the next run.
func TestSweepWhosePart1Fails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sweep")
	_, others, errs := sweepParts(t, "http://127.0.0.1:1", dir, 2)
	for i, err := range errs {
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("part %d: %v", i+1, err)
		}
	}
	if others[0]+others[1] != 0 {
		t.Errorf("the others took part in %v runs", others)
	}
}
