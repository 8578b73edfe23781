package stats_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace/stats"
)

// Scores and slopes counted by hand: 10 pairs of 5 values, one tie among them.
func TestTrendOf(t *testing.T) {
	nan := math.NaN()
	for name, test := range map[string]struct {
		values []float64
		want   stats.Trend
	}{
		"none":     {nil, stats.Trend{P: 1}},
		"constant": {[]float64{2, 2, 2, 2}, stats.Trend{P: 1}},
		// S = 8, variance = 5*4*15/18 = 16.667, z = 7/4.0825
		"nine up, one down": {[]float64{1, 2, 4, 3, 5}, stats.Trend{Slope: 1, Tau: .8, P: .0864}},
		// S = 9, variance = (5*4*15 - 2*1*9)/18 = 15.667, z = 8/3.9581
		"a tie":   {[]float64{1, 2, 2, 3, 5}, stats.Trend{Slope: 1, Tau: .9, P: .0433}},
		"falling": {[]float64{9, 7, 5, 3, 1}, stats.Trend{Slope: -2, Tau: -1, P: .0275}},
		"gaps":    {[]float64{0, nan, 4, 6, nan, nan, 12}, stats.Trend{Slope: 2, Tau: 1, P: .0894}},
	} {
		got := stats.TrendOf(test.values)
		if math.Abs(got.Slope-test.want.Slope) > 1e-4 || math.Abs(got.Tau-test.want.Tau) > 1e-12 || math.Abs(got.P-test.want.P) > 1e-4 {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// A trend changes its sign with the values, and its slope scales with them.
func TestTrendLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 30), func(i int) float64 { return float64(i) }), 0, 40).Draw(t, "values")
		scaled := make([]float64, len(values))
		for i, v := range values {
			scaled[i] = -2 * v
		}
		a, b := stats.TrendOf(values), stats.TrendOf(scaled)
		if math.Abs(a.Slope*-2-b.Slope) > 1e-9 || a.Tau != -b.Tau || a.P < 0 || a.P > 1 {
			t.Fatalf("%+v of %v, %+v of their -2 times", a, values, b)
		}
	})
}

// The test holds its level: 5 % of independent series have a P below 5 %, and
// autocorrelated ones, of which the plain test finds a trend in every fourth, 15 %.
func TestTrendOfNoise(t *testing.T) {
	const series = 600
	for _, test := range []struct {
		correlation float64
		most        int
	}{{0, 45}, {.5, 110}} {
		found := 0
		for seed := range uint64(series) {
			random := stats.NewStream(seed, "noise")
			values, x := make([]float64, 60), 0.0
			for i := range values {
				x = test.correlation*x + math.Sqrt(1-test.correlation*test.correlation)*random.NormFloat64()
				values[i] = x
			}
			if stats.TrendOf(values).P < .05 {
				found++
			}
		}
		if found > test.most {
			t.Errorf("correlation %v: %d trends in %d series", test.correlation, found, series)
		}
	}
}

func TestAutocorrelation(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		values []float64
		lag    int
		want   float64
	}{
		{[]float64{1, -1, 1, -1}, 1, -.75},
		{[]float64{1, -1, 1, -1}, 2, .5},
		{[]float64{1, nan, -1, 1, -1}, 1, -.5},
		{[]float64{3, 3, 3}, 1, nan},
		{[]float64{1, 2}, 2, nan},
		{nil, 1, nan},
	} {
		got := stats.Autocorrelation(test.values, test.lag)
		if math.Abs(got-test.want) > 1e-12 || math.IsNaN(got) != math.IsNaN(test.want) {
			t.Errorf("%v at lag %d: %v, want %v", test.values, test.lag, got, test.want)
		}
	}
}
