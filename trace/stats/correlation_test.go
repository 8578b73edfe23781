package stats_test

import (
	"math"
	"testing"

	mstats "github.com/montanaflynn/stats"
	"pgregory.net/rapid"

	"moontide/trace/stats"
)

func TestPearson(t *testing.T) {
	tests := []struct {
		name string
		x, y []float64
		want float64
	}{
		{"a line", []float64{1, 2, 3}, []float64{10, 20, 30}, 1},
		{"a falling line", []float64{1, 2, 3}, []float64{6, 5, 4}, -1},
		// Deviations -1 0 1 and -2 1 1: 3 / sqrt(2 * 6).
		{"in between", []float64{1, 2, 3}, []float64{0, 3, 3}, 3 / math.Sqrt(12)},
		{"none", []float64{-1, 0, 1}, []float64{1, 0, 1}, 0},
		{"constant", []float64{1, 2}, []float64{5, 5}, math.NaN()},
		{"nothing", nil, nil, math.NaN()},
	}
	for _, test := range tests {
		got := stats.Pearson(test.x, test.y)
		if math.IsNaN(test.want) != math.IsNaN(got) || !math.IsNaN(got) && !near(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestPearsonIsTheCorrelationOfStats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 20).Draw(t, "n")
		side := rapid.SliceOfN(rapid.Map(rapid.IntRange(-1000, 1000), func(n int) float64 { return float64(n) }), n, n)
		x, y := side.Draw(t, "x"), side.Draw(t, "y")
		got := stats.Pearson(x, y)
		if math.IsNaN(got) {
			t.Skip("constant")
		}
		if want, err := mstats.Correlation(x, y); err != nil || !near(got, want) {
			t.Fatalf("%v, want %v (%v)", got, want, err)
		}
		if got < -1 || got > 1 {
			t.Fatalf("%v is outside -1..1", got)
		}
	})
}
