package diff_test

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"moontide/analyze/diff"
	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/trace"
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
func metrics(t testing.TB, names ...string) (all []measure.Metric) {
	t.Helper()
	for _, name := range names {
		m, err := measure.ParseMetric(name)
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

// ofTTFTs returns a run with these TTFTs in milliseconds.
func ofTTFTs(t *testing.T, ttfts []float64) *diff.Run {
	t.Helper()
	records := make([]replay.Record, len(ttfts))
	for i, ttft := range ttfts {
		records[i] = answered(i, ttft)
	}
	return read(t, "run", ended(), records, measure.Options{Virtual: true})
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
// exponential. B serves 3 % faster. Both sides have the same arrivals and mostly the
// same work.
func queue(utilization float64) shape {
	serveA, serveB := 1/utilization, 1.03/utilization // requests per second; arrivals come at 1 per second
	return shape{
		name: fmt.Sprintf("M/M/1 at %.0f %%", 100*utilization),
		draw: func(random *rand.Rand, n int) (a, b []float64) {
			waitAtStart := func(serve, u, x float64) float64 {
				if u > 1/serve {
					return 0
				}
				return x / (serve - 1)
			}
			u, x := random.Float64(), random.ExpFloat64()
			waitA, waitB := waitAtStart(serveA, u, x), waitAtStart(serveB, u, x)
			for range n {
				work, gap := random.ExpFloat64(), random.ExpFloat64()
				workB := work
				if random.Float64() < 0.3 {
					workB = random.ExpFloat64()
				}
				a, b = append(a, 1000*(waitA+work/serveA)), append(b, 1000*(waitB+workB/serveB))
				waitA, waitB = max(0, waitA+work/serveA-gap), max(0, waitB+workB/serveB-gap)
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

func normal(p float64) float64    { return 100 - 20*math.Sqrt2*math.Erfcinv(2*p) }
func lognormal(p float64) float64 { return 100 * math.Exp(-math.Sqrt2*math.Erfcinv(2*p)) }
func pareto(p float64) float64    { return 100 * math.Pow(1-p, -1/2.5) }

var shapes = []shape{
	marginal("normal, together", normal, 100, 0.8, 1.02),
	marginal("lognormal, apart", lognormal, 100*math.Exp(0.5), 0, 1.05),
	marginal("Pareto 2.5, together", pareto, 100*2.5/1.5, 0.8, 1.05),
	queue(0.7),
}

// draws returns the number of pairs of runs to draw: few, or 30 times as many on request.
func draws(n int) int {
	if os.Getenv("MOONTIDE_COVERAGE") != "" {
		return 30 * n
	}
	return n
}

// covered counts, over many pairs of runs, how often there was an interval and how
// often it contained the true value.
type covered struct{ given, right int }

func coverage(t *testing.T, s shape, requests, pairs int, stats ...string) map[string]covered {
	t.Helper()
	var names []string
	for _, stat := range stats {
		names = append(names, stat+"_ttft_ms")
	}
	asked := metrics(t, names...)
	found := map[string]covered{}
	for i := range draws(pairs) {
		a, b := s.draw(rand.New(rand.NewPCG(uint64(i), uint64(requests))), requests)
		c := diff.Of([]*diff.Run{ofTTFTs(t, a)}, []*diff.Run{ofTTFTs(t, b)}, diff.Options{Metrics: asked, Seed: uint64(i), Resamples: 200})
		for k, stat := range stats {
			f := found[stat]
			if d := c.Differences[k]; d.Interval.Set {
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
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for stat, f := range coverage(t, s, 1000, 8, "mean", "median", "p90") {
				if 2*f.given < draws(8) {
					t.Errorf("%s: %d of %d pairs have an interval", stat, f.given, draws(8))
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
	const requests, pairs = 1000, 4
	asked := metrics(t, "mean_ttft_ms")
	width := 0.
	for i := range pairs {
		a, b := shapes[0].draw(rand.New(rand.NewPCG(uint64(i), 1)), requests)
		in := diff.Of([]*diff.Run{ofTTFTs(t, a)}, []*diff.Run{ofTTFTs(t, b)}, diff.Options{Metrics: asked, Resamples: 200}).Differences[0].Interval.Value
		width += (in.High - in.Low) / pairs
	}
	// The standard deviation of a single difference follows from the shape's
	// distribution.
	single := 20 * math.Sqrt(1+1.02*1.02-2*0.8*1.02)
	if known := 2 * 1.96 * single / math.Sqrt(requests); width > 1.5*known || width < 0.75*known {
		t.Errorf("intervals are %.3f ms wide; with the true spread they would be %.3f", width, known)
	}
}

// A percentile that depends on few requests has no interval; where there is one,
// its coverage is correct.
func TestFewBeyondAPercentile(t *testing.T) {
	if few := coverage(t, shapes[1], 500, 2, "p99")["p99"]; few.given > 0 {
		t.Errorf("%d intervals of the p99 of 500 requests", few.given)
	}
	enough := coverage(t, shapes[1], 2000, 4, "p99")["p99"]
	if 4*enough.given < 3*draws(4) {
		t.Errorf("%d of %d pairs of 2,000 requests have an interval of p99", enough.given, draws(4))
	}
	checkCoverage(t, "p99", enough)
}

// Runs differ in speed, which shows only if a side has several runs.
func TestCoverageOfSeveralRuns(t *testing.T) {
	const requests, runs = 200, 3
	asked := metrics(t, "mean_ttft_ms")
	draw := func(random *rand.Rand, base []float64) *diff.Run {
		ttfts, speed := make([]float64, requests), 1+0.05*random.NormFloat64()
		for i, x := range base {
			ttfts[i] = speed * (x + 5*random.NormFloat64())
		}
		return ofTTFTs(t, ttfts)
	}
	var one, several covered
	for i := range draws(12) {
		random := rand.New(rand.NewPCG(uint64(i), 2))
		base, _ := shapes[0].draw(random, requests)
		var a, b []*diff.Run
		for range runs {
			a, b = append(a, draw(random, base)), append(b, draw(random, base))
		}
		for n, found := range map[int]*covered{1: &one, runs: &several} {
			found.given++
			if diff.Of(a[:n], b[:n], diff.Options{Metrics: asked, Resamples: 200}).Differences[0].Interval.Value.Has(0) {
				found.right++
			}
		}
	}
	checkCoverage(t, "three runs a side", several)
	if one.right > draws(8) {
		t.Errorf("the truth is in %d of %d intervals of single runs: this shows nothing", one.right, draws(12))
	}
}
