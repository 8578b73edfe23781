package stats_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace/stats"
)

func TestDistances(t *testing.T) {
	nan := math.NaN()
	tests := []struct {
		name            string
		a, b            []float64
		ks, wasserstein float64
	}{
		{"equal", []float64{1, 2, 3}, []float64{3, 1, 2}, 0, 0},
		{"equal shares", []float64{1, 2}, []float64{1, 1, 2, 2}, 0, 0},
		{"shifted", []float64{0, 1, 2}, []float64{10, 11, 12}, 1, 10},
		// Shares up to 0 1 2 3: 1/3 2/3 2/3 1 against 0 2/4 1 1.
		{"mixed", []float64{0, 1, 3}, []float64{1, 1, 2, 2}, 1.0 / 3, (1.0/3 + 1.0/6 + 1.0/3)},
		// Half the earth moves from 0 to 8.
		{"one of two", []float64{0, 0}, []float64{0, 8}, 0.5, 4},
		{"negative", []float64{-5}, []float64{5}, 1, 10},
		// The examples of SciPy's wasserstein_distance, without weights.
		{"scipy", []float64{0, 1, 3}, []float64{5, 6, 8}, 1, 5},
		{"no values", nil, []float64{1}, nan, nan},
		{"neither has values", nil, nil, nan, nan},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, b := stats.Of(slices.Clone(test.a)), stats.Of(slices.Clone(test.b))
			for _, pair := range [][2]stats.Sample{{a, b}, {b, a}} {
				ks, w := stats.KS(pair[0], pair[1]), stats.Wasserstein(pair[0], pair[1])
				if math.IsNaN(test.ks) {
					if !math.IsNaN(ks) || !math.IsNaN(w) {
						t.Errorf("KS %v, Wasserstein %v of nothing", ks, w)
					}
				} else if !near(ks, test.ks) || !near(w, test.wasserstein) {
					t.Errorf("KS %v, Wasserstein %v, want %v, %v", ks, w, test.ks, test.wasserstein)
				}
			}
		})
	}
}

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
