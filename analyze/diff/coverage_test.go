package diff_test

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"moontide/analyze/diff"
	"moontide/analyze/run"
	"moontide/replay"
	"moontide/trace"

	"github.com/google/go-cmp/cmp"
)

// each iterates over records like a run folder.
func each(records []replay.Record) iter.Seq2[replay.Record, error] {
	return func(yield func(replay.Record, error) bool) {
		for _, rec := range records {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// metrics returns metrics by name.
func metrics(t testing.TB, names ...string) (all []run.Metric) {
	t.Helper()
	for _, name := range names {
		m, err := run.ParseMetric(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// answered returns a request that was sent when due and answered with one token
// after ttft milliseconds.
func answered(row int, ttft float64) replay.Record {
	due := time.Duration(row) * 100 * time.Millisecond
	first := due + time.Duration(ttft*float64(time.Millisecond))
	return replay.Record{
		Request: trace.Request{InputLength: 1000, OutputLength: 1},
		Row:     row, Due: due, Ready: due, Sent: trace.Some(due), First: trace.Some(first), Last: trace.Some(first), Done: first,
		Chunks: 1, Counts: replay.Counts{Input: trace.Some(1000), Output: trace.Some(1)}, Status: 200,
	}
}

// Runs built by RunOfTTFTs equal runs returned by Read.
func TestDrawnRunsAreAsRead(t *testing.T) {
	asked := metrics(t, "mean_ttft_ms", "p90_ttft_ms", "max_ttft_ms")
	var drawn, read [2]*diff.Run
	for side, ttfts := range [2][]float64{} {
		ttfts, _ = shapes[2].draw(rand.New(rand.NewPCG(uint64(side), 1)), 300)
		records := make([]replay.Record, len(ttfts))
		for i, x := range ttfts {
			records[i] = answered(i, x)
		}
		drawn[side] = diff.RunOfTTFTs(asked, ttfts)
		var err error
		if read[side], err = diff.Read(diff.Source{Records: each(records), Measure: run.Options{Virtual: true}}, asked); err != nil {
			t.Fatal(err)
		}
	}
	opts := diff.Options{Metrics: asked, Seed: 1, Resamples: 50}
	want := diff.Of(read[:1], read[1:], opts)
	got := diff.DifferencesOf(drawn[0], drawn[1], opts)
	ignoreFuncs := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type().Kind() == reflect.Func }, cmp.Ignore())
	if d := cmp.Diff(want.Differences, got, ignoreFuncs, cmp.AllowUnexported(run.Metric{}, run.Statistic{})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(want.Requests, diff.Of(drawn[:1], drawn[1:], opts).Requests); d != "" {
		t.Error(d)
	}
}

// shape generates the TTFTs of the same requests in two runs and knows the true
// differences between the underlying distributions.
type shape struct {
	name  string
	draw  func(random *rand.Rand, n int) (a, b []float64)
	truth func(stat string) float64
}

// percentiles maps the tested statistics to quantiles; the mean is not among them.
var percentiles = map[string]float64{"median": 0.5, "p90": 0.9, "p99": 0.99}

// marginal returns a shape with independent requests: B's distribution is A's times
// a scale, and TTFTs of the same request are correlated.
func marginal(name string, quantile func(p float64) float64, mean, together, scale float64) shape {
	phi := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
	return shape{
		name: name,
		draw: func(random *rand.Rand, n int) (a, b []float64) {
			for range n {
				x, y := random.NormFloat64(), random.NormFloat64()
				a = append(a, quantile(phi(x)))
				b = append(b, scale*quantile(phi(together*x+math.Sqrt(1-together*together)*y)))
			}
			return a, b
		},
		truth: func(stat string) float64 {
			if stat == "mean" {
				return (scale - 1) * mean
			}
			return (scale - 1) * quantile(percentiles[stat])
		},
	}
}

// queue returns an M/M/1 queue in steady state, whose sojourn times are
// exponential. B serves 3 % faster. With the same trace, both sides have the same
// arrivals and mostly the same work.
func queue(utilization float64, sameTrace bool) shape {
	serveA, serveB := 1/utilization, 1.03/utilization // requests per second; arrivals come at 1 per second
	return shape{
		name: fmt.Sprintf("M/M/1 at %.0f %%, same trace %v", 100*utilization, sameTrace),
		draw: func(random *rand.Rand, n int) (a, b []float64) {
			waitAtStart := func(serve, u, x float64) float64 {
				if u > 1/serve {
					return 0
				}
				return x / (serve - 1)
			}
			u, x := random.Float64(), random.ExpFloat64()
			waitA := waitAtStart(serveA, u, x)
			if !sameTrace {
				u, x = random.Float64(), random.ExpFloat64()
			}
			waitB := waitAtStart(serveB, u, x)
			for range n {
				workA, gapA := random.ExpFloat64(), random.ExpFloat64()
				workB, gapB := workA, gapA
				if !sameTrace {
					gapB = random.ExpFloat64()
				}
				if !sameTrace || random.Float64() < 0.3 {
					workB = random.ExpFloat64()
				}
				a, b = append(a, 1000*(waitA+workA/serveA)), append(b, 1000*(waitB+workB/serveB))
				waitA, waitB = max(0, waitA+workA/serveA-gapA), max(0, waitB+workB/serveB-gapB)
			}
			return a, b
		},
		truth: func(stat string) float64 {
			times := 1.
			if stat != "mean" {
				times = -math.Log(1 - percentiles[stat])
			}
			return 1000 * times * (1/(serveB-1) - 1/(serveA-1))
		},
	}
}

func normal(p float64) float64 { return 100 - 20*math.Sqrt2*math.Erfcinv(2*p) }

var shapes = []shape{
	marginal("normal, together", normal, 100, 0.8, 1.02),
	marginal("normal, apart", normal, 100, 0, 1.02),
	marginal("lognormal, together", func(p float64) float64 { return 100 * math.Exp(-math.Sqrt2*math.Erfcinv(2*p)) }, 100*math.Exp(0.5), 0.8, 1.05),
	marginal("lognormal, apart", func(p float64) float64 { return 100 * math.Exp(-math.Sqrt2*math.Erfcinv(2*p)) }, 100*math.Exp(0.5), 0, 1.05),
	marginal("Pareto 2.5, together", func(p float64) float64 { return 100 * math.Pow(1-p, -1/2.5) }, 100*2.5/1.5, 0.8, 1.05),
	queue(0.5, true), queue(0.7, true), queue(0.85, true), queue(0.7, false),
}

// covered counts, over many pairs of runs, how often there was an interval and how
// often it contained the true value.
type covered struct{ given, right int }

func coverage(t *testing.T, s shape, requests, pairs int, stats []string) map[string]covered {
	var names []string
	for _, stat := range stats {
		names = append(names, stat+"_ttft_ms")
	}
	asked := metrics(t, names...)
	found := map[string]covered{}
	for i := range pairs {
		a, b := s.draw(rand.New(rand.NewPCG(uint64(i), uint64(requests))), requests)
		differences := diff.DifferencesOf(diff.RunOfTTFTs(asked, a), diff.RunOfTTFTs(asked, b), diff.Options{Metrics: asked, Seed: uint64(i), Resamples: 400})
		for k, stat := range stats {
			f := found[stat]
			if d := differences[k]; d.Interval.Set {
				f.given++
				if d.Interval.Value.Has(s.truth(stat)) {
					f.right++
				}
			}
			found[stat] = f
		}
	}
	return found
}

// A 95 % interval contains the true value about 95 times in 100, whatever the
// shape. The exact share depends on the draws, whose seeds are fixed.
func TestCoverage(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and nothing is shared between goroutines")
	}
	const requests, pairs = 1500, 120
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for stat, f := range coverage(t, s, requests, pairs, []string{"mean", "median", "p90"}) {
				if 10*f.given < 6*pairs {
					t.Errorf("%s: %d of %d pairs have an interval", stat, f.given, pairs)
				}
				checkCoverage(t, stat, f)
			}
		})
	}
}

// checkCoverage allows for 2.5 standard deviations of sampling error, and for runs
// that are short compared with the queue's correlation time.
func checkCoverage(t *testing.T, what string, f covered) {
	t.Helper()
	share := float64(f.right) / float64(f.given)
	if least := 0.93 - 2.5*math.Sqrt(0.95*0.05/float64(f.given)); share < least {
		t.Errorf("%s: the truth is in %d of %d intervals, %.3f; that is below %.3f", what, f.right, f.given, share, least)
	}
}

// For independent requests, the intervals are hardly wider than those of methods
// that assume independence.
func TestIntervalsAreNarrow(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow, and nothing is shared between goroutines")
	}
	const requests, pairs = 2000, 40
	asked := metrics(t, "mean_ttft_ms")
	width := 0.
	for i := range pairs {
		a, b := shapes[0].draw(rand.New(rand.NewPCG(uint64(i), 1)), requests)
		in := diff.DifferencesOf(diff.RunOfTTFTs(asked, a), diff.RunOfTTFTs(asked, b), diff.Options{Metrics: asked, Resamples: 400})[0].Interval.Value
		width += (in.High - in.Low) / pairs
	}
	// The standard deviation of a single difference follows from the shape's
	// distribution.
	single := 20 * math.Sqrt(1+1.02*1.02-2*0.8*1.02)
	if known := 2 * 1.96 * single / math.Sqrt(requests); width > 1.35*known || width < 0.9*known {
		t.Errorf("intervals are %.3f ms wide; with the true spread they would be %.3f", width, known)
	}
}

// A percentile that depends on few requests has no interval; where there is one,
// its coverage is correct.
func TestFewBeyondAPercentile(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow, and nothing is shared between goroutines")
	}
	few := coverage(t, shapes[2], 500, 40, []string{"p99"})["p99"]
	if few.given > 0 {
		t.Errorf("%d intervals of the p99 of 500 requests", few.given)
	}
	enough := coverage(t, shapes[2], 2000, 100, []string{"p99"})["p99"]
	if enough.given < 95 {
		t.Errorf("%d of 100 pairs of 2,000 requests have an interval of p99", enough.given)
	}
	checkCoverage(t, "p99", enough)
	// 40 of 4,000 requests exceed p99, but they come in a few bursts.
	if rushes := coverage(t, queue(0.85, true), 4000, 20, []string{"p99"})["p99"]; rushes.given > 4 {
		t.Errorf("%d of 20 p99 of a busy queue have an interval", rushes.given)
	}
}

// Runs differ in speed, which shows only if a side has several runs.
func TestCoverageOfSeveralRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow, and nothing is shared between goroutines")
	}
	const requests, pairs, runs = 200, 150, 3
	asked := metrics(t, "mean_ttft_ms")
	draw := func(random *rand.Rand, base []float64) *diff.Run {
		ttfts, speed := make([]float64, requests), 1+0.05*random.NormFloat64()
		for i, x := range base {
			ttfts[i] = speed * (x + 5*random.NormFloat64())
		}
		return diff.RunOfTTFTs(asked, ttfts)
	}
	var one, several covered
	for i := range pairs {
		random := rand.New(rand.NewPCG(uint64(i), 2))
		base, _ := shapes[0].draw(random, requests)
		var a, b []*diff.Run
		for range runs {
			a, b = append(a, draw(random, base)), append(b, draw(random, base))
		}
		for _, side := range []struct {
			a, b  []*diff.Run
			found *covered
		}{{a[:1], b[:1], &one}, {a, b, &several}} {
			d := diff.Of(side.a, side.b, diff.Options{Metrics: asked, Resamples: 200}).Differences[0]
			side.found.given++
			if d.Interval.Value.Has(0) {
				side.found.right++
			}
		}
	}
	checkCoverage(t, "three runs a side", several)
	if one.right > pairs/2 {
		t.Errorf("the truth is in %d of %d intervals of single runs: this shows nothing", one.right, pairs)
	}
}
