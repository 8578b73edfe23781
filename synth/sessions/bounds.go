package sessions

import (
	"math"
	"strconv"
)

// The bounds of bins and the places of cuts are no request's own value. They lie
// between the values of at least minCell requests on either side. At the ends, the
// low one is a round number further out, as roughly as minCell requests are apart
// there; the high one is where the bin has the mean and the variance of its
// values. Bounds of whole numbers end in .5.

// extent is how far the values of a dimension go, as far as that may be told.
type extent struct {
	low, high float64
	whole     bool // numbers
}

// extentOf returns that of sorted values.
func extentOf(values []float64, whole bool) extent {
	return extent{below(values, whole), above(values, whole), whole}
}

// bounded gives bins of sorted values, whose bounds are the first and the last
// of these, bounds that may be told, within an extent.
func (e extent) bounded(bins []bin, values []float64) []bin {
	told := make([]bin, len(bins))
	for i, b := range bins {
		if b.low < b.high {
			if i == 0 {
				b.low = max(e.low, below(values, e.whole))
			} else {
				b.low = between(bins[i-1].high, b.low, e.whole)
			}
			if i == len(bins)-1 {
				b.high = min(e.high, b.reach(e.whole))
			} else {
				b.high = between(b.high, bins[i+1].low, e.whole)
			}
			b.high = max(b.high, b.mean)
			b.mean = min(max(rounded(b.mean, 5), b.low), b.high)
		} else {
			b.mean = b.low
		}
		b.weight = rounded(b.weight, 6)
		told[i] = b
	}
	return told
}

// reach is the high end with which the power law from the low end has the bin's
// mean and variance: for U^k these are 1/(1+k) and the square of that, times
// k^2/(1+2k).
func (b *bin) reach(whole bool) float64 {
	mean := b.mean - b.low
	e := b.variance / (mean * mean)
	high := b.low + mean*(1+e+math.Sqrt(e*e+e))
	if whole {
		return math.Ceil(rounded(high, 3)) + .5
	}
	return rounded(high, 3)
}

// between returns a short number above low and below high.
func between(low, high float64, whole bool) float64 {
	if whole {
		return math.Round(shortest(low+1, high)) - .5
	}
	if x := shortest(low, high); low < x && x < high {
		return x
	}
	return low + (high-low)/2
}

// shortest returns the number with the fewest digits among those around the
// middle.
func shortest(low, high float64) float64 {
	middle := low + (high-low)/2
	for digits := 1; digits < 17; digits++ {
		if x := rounded(middle, digits); low < x && x < high || x == low && low == high {
			return x
		}
	}
	return high
}

// below returns a round number below sorted values.
func below(values []float64, whole bool) float64 {
	low := values[0]
	grid := gridFor(values[min(minCell, len(values))-1]-low, low, whole)
	low = rounded(math.Floor(low/grid)*grid, 12)
	if whole {
		low -= .5
	}
	return low
}

// above returns one above them.
func above(values []float64, whole bool) float64 {
	n := len(values)
	high := values[n-1]
	grid := gridFor(high-values[n-min(minCell, n)], high, whole)
	high = rounded(math.Ceil(high/grid)*grid, 12)
	if whole {
		high += .5
	}
	return high
}

// gridFor returns the finest of the grids 1, 2, 5, 10, ... that is as wide as
// values near one are apart.
func gridFor(apart, near float64, whole bool) float64 {
	apart = max(apart, math.Abs(near)*1e-6, 1e-9)
	if whole {
		apart = max(apart, 1)
	}
	ten := math.Pow(10, math.Floor(math.Log10(apart)))
	for _, grid := range []float64{1, 2, 5} {
		if grid*ten >= apart {
			return grid * ten
		}
	}
	return 10 * ten
}

// wholeIn tells whether all values in a dimension are whole numbers.
func wholeIn(samples []sample, dim int) bool {
	for _, s := range samples {
		if s.at[dim] != math.Trunc(s.at[dim]) {
			return false
		}
	}
	return true
}

// rounded keeps some decimal digits, so that a model's file is short and still
// says exactly what the model is.
func rounded(x float64, digits int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	return r
}
