package sessions

import (
	"math"
	"strconv"
)

// The bounds of bins and the thresholds of splits are between groups of at least
// minRequests values. The lowest is a round number further out, as coarse as the
// spacing of minRequests values there; the highest follows from the bin's mean and
// variance. Bounds of whole numbers end in .5.

// valueRange is the range of the values in a dimension, rounded outward.
type valueRange struct {
	low, high float64
	whole     bool // whole numbers only
}

// publicRange returns the range of sorted values.
func publicRange(values []float64, whole bool) valueRange {
	return valueRange{roundBelow(values, whole), roundAbove(values, whole), whole}
}

// publicBins returns the bins of sorted values, with public bounds in the
// range.
func (r valueRange) publicBins(bins []rawBin, values []float64) []bin {
	public := make([]bin, len(bins))
	numbers := make([]float64, 0, 5*len(bins)) // for all bins
	for i, b := range bins {
		from := len(numbers)
		low, high, mean := b.low, b.high, b.mean
		if low < high {
			low, high, mean = r.publicBounds(bins, i, values)
		}
		numbers = append(numbers, float64(b.count), rounded(b.weight, 6), low)
		if low < high {
			numbers = append(numbers, high, mean)
		}
		public[i] = numbers[from:len(numbers):len(numbers)]
	}
	return public
}

func (r valueRange) publicBounds(bins []rawBin, i int, values []float64) (low, high, mean float64) {
	b := bins[i]
	if i == 0 {
		low = max(r.low, roundBelow(values, r.whole))
	} else {
		low = between(bins[i-1].high, b.low, r.whole)
	}
	if i == len(bins)-1 {
		b.low = low
		high = min(r.high, b.highEnd(r.whole))
	} else {
		high = between(b.high, bins[i+1].low, r.whole)
	}
	high = max(high, b.mean)
	return low, high, min(max(rounded(b.mean, 5), low), high)
}

// highEnd returns the high bound with which the power law from the low bound has the
// mean and the variance of the bin. Those of U^k are m = 1/(1+k) and m^2 k^2/(1+2k).
func (b *rawBin) highEnd(whole bool) float64 {
	mean := b.mean - b.low
	e := b.variance / (mean * mean)
	high := b.low + mean*(1+e+math.Sqrt(e*e+e))
	if whole {
		return math.Ceil(rounded(high, 3)) + .5
	}
	return rounded(high, 3)
}

// between returns a short number between low and high, exclusive.
func between(low, high float64, whole bool) float64 {
	if whole {
		return math.Round(shortest(low+1, high)) - .5
	}
	if x := shortest(low, high); low < x && x < high {
		return x
	}
	return low + (high-low)/2
}

// shortest returns the number with the fewest digits near the middle.
func shortest(low, high float64) float64 {
	middle := low + (high-low)/2
	for digits := 1; digits < 17; digits++ {
		if x := rounded(middle, digits); low < x && x < high || x == low && low == high {
			return x
		}
	}
	return high
}

// roundBelow returns a round number below sorted values.
func roundBelow(values []float64, whole bool) float64 {
	return roundOutward(values[0], values[min(minRequests, len(values))-1], -1, whole)
}

// roundAbove returns a round number above sorted values.
func roundAbove(values []float64, whole bool) float64 {
	n := len(values)
	return roundOutward(values[n-1], values[n-min(minRequests, n)], 1, whole)
}

// roundOutward returns a round number beyond the end of values, at about their
// spacing; the direction is -1 or 1.
func roundOutward(end, inner, direction float64, whole bool) float64 {
	grid := gridFor(math.Abs(end-inner), end, whole)
	beyond := rounded(math.Ceil(direction*end/grid)*grid, 12)
	if whole {
		beyond += .5
	}
	return direction * beyond
}

// gridFor returns the finest of the grids 1, 2, 5, 10, ... that is at least as
// wide as the spacing of values near one.
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

// allWhole reports whether all values in a dimension are whole numbers.
func allWhole(samples []sample, dim int) bool {
	for _, s := range samples {
		if s.values[dim] != math.Trunc(s.values[dim]) {
			return false
		}
	}
	return true
}

// rounded rounds to some decimal digits, to keep a model's file both short and
// exact.
func rounded(x float64, digits int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	return r
}
