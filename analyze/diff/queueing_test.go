package diff_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"moontide/analyze/diff"
	"moontide/analyze/run"
	"moontide/replay"
)

// overloaded returns a queue that starts empty and receives 1.3 times the requests
// that A can serve. B is faster by the given factor. The share fresh of the work is
// drawn separately for each side.
func overloaded(faster, fresh float64) shape {
	s := shape{
		name: fmt.Sprintf("overloaded, B %v times as fast, %v of the work anew", faster, fresh),
		draw: func(random *rand.Rand, n int) (a, b []float64) {
			const utilization = 1.3
			waitA, waitB := 0., 0.
			for range n {
				workA, gap := random.ExpFloat64(), random.ExpFloat64()
				workB := workA
				if random.Float64() < fresh {
					workB = random.ExpFloat64()
				}
				endA, endB := waitA+utilization*workA, waitB+utilization/faster*workB
				a, b = append(a, 1000*endA), append(b, 1000*endB)
				waitA, waitB = max(0, endA-gap), max(0, endB-gap)
			}
			return a, b
		},
	}
	truths := sync.OnceValue(func() map[string]float64 { return meanDifferences(s.draw, 1500) })
	s.truth = func(stat string) float64 { return truths()[stat] }
	return s
}

// meanDifferences estimates the expected differences of the statistics by
// simulation, since a growing queue has no closed form.
func meanDifferences(draw func(random *rand.Rand, n int) (a, b []float64), requests int) map[string]float64 {
	const pairs = 1000
	means := map[string]float64{}
	for i := range pairs {
		a, b := draw(rand.New(rand.NewPCG(uint64(i), 77)), requests)
		slices.Sort(a)
		slices.Sort(b)
		for k := range a {
			means["mean"] += (b[k] - a[k]) / float64(requests) / pairs
		}
		for stat, p := range percentiles {
			rank := p * float64(requests-1)
			below := int(rank)
			at := func(x []float64) float64 { return x[below] + (rank-float64(below))*(x[below+1]-x[below]) }
			means[stat] += (at(b) - at(a)) / pairs
		}
	}
	return means
}

// longer returns a trace without queueing whose prompts get longer: values rise,
// but the differences of requests are independent.
func longer(together float64) shape {
	s := marginal("", normal, 0, together, 1)
	draw := s.draw
	s.name = "prompts get longer"
	s.draw = func(random *rand.Rand, n int) (a, b []float64) {
		a, b = draw(random, n)
		for i := range a {
			rise := 200 * float64(i) / float64(n)
			a[i], b[i] = a[i]+rise, b[i]+rise
		}
		return a, b
	}
	s.truth = func(string) float64 { return 0 }
	return s
}

// Differences accumulate in a growing queue. The intervals account for it, whether
// the sides differ or not, including those of percentiles that only the end of the
// run determines.
func TestCoverageOfGrowingQueues(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and nothing is shared between goroutines")
	}
	const requests, pairs = 1500, 120
	for _, s := range []shape{overloaded(1, 0.3), overloaded(1.05, 0.05), overloaded(1.05, 0.3), overloaded(1.2, 1), longer(0.8)} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			stats := []string{"mean", "median", "p90", "p99"}
			if s.name == "prompts get longer" {
				stats = stats[:3]
			}
			for stat, f := range coverage(t, s, requests, pairs, stats) {
				if f.given < pairs {
					t.Errorf("%s: %d of %d pairs have an interval", stat, f.given, pairs)
				}
				checkCoverage(t, stat, f)
			}
		})
	}
}

// Differences accumulated during an unmeasured warm-up are accounted for.
func TestCoverageBehindAWarmup(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow, and nothing is shared between goroutines")
	}
	const requests, warmup, pairs = 1500, 450, 120
	s := overloaded(1.05, 0.3)
	after := func(random *rand.Rand, n int) (a, b []float64) {
		a, b = s.draw(random, requests)
		return a[warmup:], b[warmup:]
	}
	truth := meanDifferences(after, requests-warmup)["mean"]
	asked := metrics(t, "mean_ttft_ms")
	window := run.Span{From: answered(warmup, 0).Due, To: 24 * time.Hour}
	windowed := func(ttfts []float64) *diff.Run {
		records := make([]replay.Record, len(ttfts))
		for i, x := range ttfts {
			records[i] = answered(i, x)
		}
		return read(t, "", ended(), records, run.Options{Virtual: true, Window: window}, asked...)
	}
	var found covered
	for i := range pairs {
		a, b := s.draw(rand.New(rand.NewPCG(uint64(i), 8)), requests)
		d := diff.Of([]*diff.Run{windowed(a)}, []*diff.Run{windowed(b)}, diff.Options{Metrics: asked, Resamples: 200}).Differences[0]
		found.given++
		if d.Interval.Value.Has(truth) {
			found.right++
		}
	}
	checkCoverage(t, "mean", found)
}

// In growing queues, small differences are detected and equal sides are not
// reported as different.
func TestPowerInGrowingQueues(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow, and nothing is shared between goroutines")
	}
	const requests, pairs = 1500, 60
	found := func(s shape) map[string]int {
		stats := []string{"mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms"}
		asked := metrics(t, stats...)
		n := map[string]int{}
		for i := range pairs {
			a, b := s.draw(rand.New(rand.NewPCG(uint64(i), 5)), requests)
			c := diff.Of([]*diff.Run{diff.RunOfTTFTs(asked, a)}, []*diff.Run{diff.RunOfTTFTs(asked, b)}, diff.Options{Metrics: asked, Resamples: 200})
			for k, d := range c.Differences {
				if d.Significant() {
					n[stats[k]]++
				}
				if !d.Rising {
					t.Errorf("pair %d: the queue does not grow", i)
				}
			}
			if r := c.Requests[0]; r.MeanInterval.Value.Has(0) != !c.Differences[0].Significant() {
				t.Errorf("pair %d: request by request the difference is %+v, and of the means %+v", i, r.MeanInterval, c.Differences[0].Interval)
			}
		}
		return n
	}
	same, faster := found(overloaded(1, 0.05)), found(overloaded(1.05, 0.05))
	for stat, n := range faster {
		if n < pairs*9/10 || same[stat] > pairs*15/100 {
			t.Errorf("%s differs in %d of %d pairs where B is 5 %% faster, in %d where it is not", stat, n, pairs, same[stat])
		}
	}
	if len(faster) != 3 {
		t.Errorf("%v", faster)
	}
}

// A run that gets slower by chance is not treated as a growing queue, nor is one
// that gets slower without queueing.
func TestRunsThatDoNotRise(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow, and nothing is shared between goroutines")
	}
	const pairs = 100
	asked := metrics(t, "mean_ttft_ms")
	for _, s := range []shape{shapes[0], queue(0.85, true), longer(0.8), longer(0)} {
		rising := 0
		for i := range pairs {
			a, b := s.draw(rand.New(rand.NewPCG(uint64(i), 6)), 1500)
			if diff.DifferencesOf(diff.RunOfTTFTs(asked, a), diff.RunOfTTFTs(asked, b), diff.Options{Metrics: asked, Resamples: 20})[0].Rising {
				rising++
			}
		}
		if rising > pairs/10 {
			t.Errorf("%s: %d of %d pairs rise", s.name, rising, pairs)
		}
	}
}

// With three runs on each side, the run values give the interval of any metric,
// regardless of queueing within each run.
func TestThreeRunsASide(t *testing.T) {
	asked := metrics(t, "mean_ttft_ms", "p99_ttft_ms", "max_ttft_ms")
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(faster float64) (runs []*diff.Run) {
		for range 3 {
			ttfts := make([]float64, 400)
			for i := range ttfts {
				ttfts[i] = 100*float64(i)/faster + 20*random.NormFloat64()
			}
			runs = append(runs, diff.RunOfTTFTs(asked, ttfts))
		}
		return runs
	}
	c := diff.Of(draw(1), draw(1.02), diff.Options{Metrics: asked})
	for _, d := range c.Differences {
		if in := d.Interval.Value; !d.Significant() || in.High-in.Low > 0.3*math.Abs(d.Difference.Value) {
			t.Errorf("%s: %+v of %v", d.Metric.Key, d.Interval, d.Difference.Value)
		}
	}
	if r := c.Requests[0]; !(r.MeanInterval.Value.High < 0) {
		t.Errorf("request by request: %+v", r)
	}
}

// With three runs on each side, the intervals of the difference and of the ratio
// are Welch's.
func TestWelch(t *testing.T) {
	asked := metrics(t, "mean_ttft_ms")
	runs := func(means ...float64) (all []*diff.Run) {
		for _, m := range means {
			all = append(all, diff.RunOfTTFTs(asked, []float64{m, m}))
		}
		return all
	}
	// Variances 1 and 16 give variances of the means of 1/3 and 16/3: 2.2490
	// degrees of freedom, for which Student's t is 3.87686.
	d := diff.Of(runs(99, 100, 101), runs(106, 110, 114), diff.Options{Metrics: asked}).Differences[0]
	if in := d.Interval.Value; math.Abs(in.Low-(10-9.22876)) > 0.001 || math.Abs(in.High-(10+9.22876)) > 0.001 {
		t.Errorf("%+v", in)
	}
	// For the ratio 1.1, the variances are 1.21 * 1/3 / 100^2 and 16/3 / 100^2:
	// 2.3008 degrees of freedom, for which Student's t is 3.80613.
	if in := d.RelativeInterval.Value; math.Abs(in.Low-(0.1-0.0911620)) > 1e-5 || math.Abs(in.High-(0.1+0.0911620)) > 1e-5 {
		t.Errorf("relative: %+v", in)
	}
}
