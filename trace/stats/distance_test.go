package stats_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace/stats"
)

// share returns the share of values that are at most x.
func share(values []float64, x float64) float64 {
	n := 0
	for _, v := range values {
		if v <= x {
			n++
		}
	}
	return float64(n) / float64(len(values))
}

func TestDistancesAgainstBruteForce(t *testing.T) {
	value := rapid.Map(rapid.IntRange(-20, 20), func(n int) float64 { return float64(n) / 4 })
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(value, 1, 15).Draw(t, "a")
		b := rapid.SliceOfN(value, 1, 15).Draw(t, "b")
		ks := 0.0
		for _, x := range slices.Concat(a, b) {
			ks = max(ks, math.Abs(share(a, x)-share(b, x)))
		}
		// The distance between the quantiles, with each value repeated as often as
		// the other side has values.
		fine := func(values []float64, times int) (all []float64) {
			for _, v := range slices.Sorted(slices.Values(values)) {
				all = append(all, slices.Repeat([]float64{v}, times)...)
			}
			return all
		}
		moved := 0.0
		to := fine(b, len(a))
		for i, from := range fine(a, len(b)) {
			moved += math.Abs(from - to[i])
		}
		x, y := stats.Of(slices.Clone(a)), stats.Of(slices.Clone(b))
		if got := stats.KS(x, y); !near(got, ks) {
			t.Fatalf("KS %v, want %v", got, ks)
		}
		if got, want := stats.Wasserstein(x, y), moved/float64(len(to)); !near(got, want) {
			t.Fatalf("Wasserstein %v, want %v", got, want)
		}
	})
}
