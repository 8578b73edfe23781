package run_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/trace/stats"
)

// The ITL covers all gaps, in any order, however many distinct gaps there are.
func TestITLIsThatOfAllGaps(t *testing.T) {
	const perRequest = 1000
	for _, different := range []int{1, 2, 500, 767, 769, 100_000, 1_000_000} {
		t.Run(fmt.Sprintf("different=%d", different), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(different), 7))
			var gaps []time.Duration
			var values []float64
			for i := range max(3000, different+different/4) {
				gap := time.Duration(i%different) * 977
				gaps = append(gaps, gap)
				values = append(values, float64(gap)/1e6)
			}
			want := stats.Of(values)
			for range 2 {
				random.Shuffle(len(gaps), func(i, k int) { gaps[i], gaps[k] = gaps[k], gaps[i] })
				var records []replay.Record
				for some := range slices.Chunk(gaps, perRequest) {
					rec := answered(0, 1)
					rec.Gaps, rec.Chunks = slices.Clone(some), len(some)+1
					records = append(records, rec)
				}
				got := compute(t, run.Options{}, records...).ITL
				near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }
				if got.Count != want.Count || got.Min != want.Min || got.Max != want.Max || !near(got.Mean, want.Mean) || !near(got.Std, want.Std) {
					t.Errorf("%d gaps, mean %v, std %v; want %d, %v, %v", got.Count, got.Mean, got.Std, want.Count, want.Mean, want.Std)
				}
				for _, p := range []float64{0.01, 0.5, 0.9, 0.99, 0.999} {
					if got, want := got.Quantile(p), want.Quantile(p); got != want {
						t.Errorf("quantile %v is %v, want %v", p, got, want)
					}
				}
			}
		})
	}
}
