package stats

import (
	"math"
	"sort"
)

// Zipf is the distribution on 0..n-1 in which k has a probability proportional
// to 1/(k+1)^s.
type Zipf struct {
	n    int
	upTo []float64 // probability of 0..k; nil if all are equal
}

// NewZipf returns the distribution for n >= 1 and an exponent s >= 0: at 0 it
// is uniform, at 1 the first is drawn twice as often as the second. It takes
// eight bytes per k unless s is 0.
func NewZipf(n int, s float64) Zipf {
	z := Zipf{n: n}
	if s == 0 {
		return z
	}
	z.upTo = make([]float64, n)
	var sum float64
	for k := range z.upTo {
		sum += math.Pow(float64(k+1), -s)
		z.upTo[k] = sum
	}
	for k := range z.upTo {
		z.upTo[k] /= sum
	}
	return z
}

// At returns the k that a uniform number in (0, 1) maps to.
func (z Zipf) At(p float64) int {
	k := int(p * float64(z.n))
	if z.upTo != nil {
		k = sort.SearchFloat64s(z.upTo, p)
	}
	return min(k, z.n-1)
}
