package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	mstats "github.com/montanaflynn/stats"
	"pgregory.net/rapid"

	"moontide/trace/stats"
)

func near(a, b float64) bool {
	return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b))
}

func TestOf(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		// count, sum, mean, std, min, max
		want [6]float64
	}{
		{"no values", nil, [6]float64{}},
		{"one value", []float64{7}, [6]float64{1, 7, 7, 0, 7, 7}},
		// Deviations -3 -1 -1 -1 0 0 2 4: squares sum to 32, 32/8 = 4.
		{"population deviation", []float64{9, 2, 4, 4, 4, 5, 5, 7}, [6]float64{8, 40, 5, 2, 2, 9}},
		{"negative and zero", []float64{0, -4, 4}, [6]float64{3, 0, 0, math.Sqrt(32.0 / 3), -4, 4}},
		{"equal values", []float64{3, 3, 3}, [6]float64{3, 9, 3, 0, 3, 3}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := stats.Of(test.values)
			got := [6]float64{float64(d.Count), d.Sum, d.Mean, d.Std, d.Min, d.Max}
			for i := range got {
				if !near(got[i], test.want[i]) {
					t.Fatalf("count, sum, mean, std, min, max = %v, want %v", got, test.want)
				}
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	tests := []struct {
		values []float64
		p      float64
		want   float64
	}{
		{nil, 0.5, 0},
		{nil, 0, 0},
		{nil, 1, 0},
		{[]float64{7}, 0.01, 7},
		{[]float64{7}, 0.99, 7},
		{[]float64{40, 10, 30, 20}, 0, 10},
		{[]float64{40, 10, 30, 20}, 1, 40},
		{[]float64{40, 10, 30, 20}, 0.5, 25},    // rank 1.5
		{[]float64{40, 10, 30, 20}, 0.25, 17.5}, // rank 0.75
		{[]float64{40, 10, 30, 20}, 0.9, 37},    // rank 2.7
		{[]float64{5, 1, 3}, 0.5, 3},            // a whole rank
		{[]float64{1, 2}, -0.1, 1},
		{[]float64{1, 2}, 1.1, 2},
		{[]float64{1, 2}, math.NaN(), 1},
	}
	for _, test := range tests {
		if got := stats.Of(slices.Clone(test.values)).Quantile(test.p); !near(got, test.want) {
			t.Errorf("Quantile(%v) of %v = %v, want %v", test.p, test.values, got, test.want)
		}
	}
}

// The library's percentile follows the same rule.
func TestQuantileIsThePercentileOfStats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 50).Draw(t, "values")
		percent := rapid.Float64Range(0.001, 100).Draw(t, "percent")
		want, err := mstats.Percentile(values, percent)
		if err != nil {
			t.Fatal(err)
		}
		if got := stats.Of(slices.Clone(values)).Quantile(percent / 100); !near(got, want) {
			t.Fatalf("Quantile(%v) = %v, want %v", percent/100, got, want)
		}
	})
}

func lognormal(n int) []float64 {
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, n)
	for i := range values {
		values[i] = math.Exp(random.NormFloat64())
	}
	return values
}

func BenchmarkOf(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("values=%d", n), func(b *testing.B) {
			values := lognormal(n)
			scratch := make([]float64, n)
			for b.Loop() {
				copy(scratch, values) // Of leaves its slice sorted
				stats.Of(scratch)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/value")
		})
	}
}
