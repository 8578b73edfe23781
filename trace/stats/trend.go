package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Autocorrelation returns the correlation of values with those lag places later,
// about their common mean, -1..1. Pairs with a NaN are left out. It is NaN if all
// values are equal or no pair is left.
func Autocorrelation(values []float64, lag int) float64 {
	sum, n := 0.0, 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	mean, squares := sum/n, 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			squares += (v - mean) * (v - mean)
		}
	}
	products, pairs := 0.0, 0
	for i := lag; i < len(values); i++ {
		if p := (values[i] - mean) * (values[i-lag] - mean); !math.IsNaN(p) {
			products += p
			pairs++
		}
	}
	if pairs == 0 || squares == 0 {
		return math.NaN()
	}
	return products / squares
}

// Trend is a monotonic trend of a series.
type Trend struct {
	// Slope is the median change per place between any two values (Sen 1968).
	Slope float64
	// Tau is Kendall's rank correlation of value and place, -1..1.
	Tau float64
	// P is the probability of a Tau at least as far from 0 without a trend.
	P float64
}

// TrendOf applies the test of Mann (1945) and Kendall to values at successive
// places; a NaN is a place without a value. The variance is that of Hamed and Rao
// (1998), which allows for autocorrelation: neighbouring windows of real traffic are
// alike, and the plain test takes that for a trend. It is never below the variance of
// independent values. Without three values the zero Trend with a P of 1 is
// returned. It takes time and memory in the square of the number of values.
func TrendOf(values []float64) Trend {
	var at, y []float64
	for i, v := range values {
		if !math.IsNaN(v) {
			at, y = append(at, float64(i)), append(y, v)
		}
	}
	n := float64(len(y))
	if n < 3 {
		return Trend{P: 1}
	}
	score, slopes := 0.0, make([]float64, 0, len(y)*(len(y)-1)/2)
	for i := range y {
		for j := range i {
			slopes = append(slopes, (y[i]-y[j])/(at[i]-at[j]))
			switch {
			case y[i] > y[j]:
				score++
			case y[i] < y[j]:
				score--
			}
		}
	}
	sortValues(slopes)
	t := Trend{Slope: (slopes[(len(slopes)-1)/2] + slopes[len(slopes)/2]) / 2, Tau: score / (n * (n - 1) / 2), P: 1}
	variance := scoreVariance(y) * dependence(at, y, t.Slope)
	if z := max(0, math.Abs(score)-1) / math.Sqrt(variance); variance > 0 {
		t.P = 2 * distuv.UnitNormal.Survival(z)
	}
	return t
}

// scoreVariance returns the variance of the Mann-Kendall score of independent values.
func scoreVariance(y []float64) float64 {
	n := float64(len(y))
	variance := n * (n - 1) * (2*n + 5)
	ties := map[float64]float64{}
	for _, v := range y {
		ties[v]++
	}
	for _, t := range ties {
		variance -= t * (t - 1) * (2*t + 5)
	}
	return variance / 18
}

// dependence returns the factor by which autocorrelation of the ranks of the
// detrended values, where it is significant, increases the variance of the score.
func dependence(at, y []float64, slope float64) float64 {
	detrended := make([]float64, len(y))
	for i := range y {
		detrended[i] = y[i] - slope*at[i]
	}
	ranks := ranksOf(detrended)
	n, sum := float64(len(y)), 0.0
	for lag := 1; lag < len(y)-2; lag++ {
		if r := Autocorrelation(ranks, lag); math.Abs(r) > 1.96/math.Sqrt(n) {
			k := n - float64(lag)
			sum += k * (k - 1) * (k - 2) * r
		}
	}
	return max(1, 1+2/(n*(n-1)*(n-2))*sum)
}

// ranksOf returns the rank of each value; equal ones have ranks in their order.
func ranksOf(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return 0
	})
	ranks := make([]float64, len(values))
	for rank, i := range order {
		ranks[i] = float64(rank)
	}
	return ranks
}
