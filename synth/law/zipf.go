package law

import (
	"math"
	"sort"
)

// Zipf is the popularity of n things of which the k-th, from 0, is drawn with
// a probability in proportion to 1/(k+1)^s.
type Zipf struct {
	n    int
	upTo []float64 // probability of things 0..k; nil where all are equal
}

// NewZipf returns the popularity of n >= 1 things for an exponent s >= 0: at 0
// all are equal, at 1 the first is drawn twice as often as the second. It
// takes eight bytes a thing where s is above 0.
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

// At returns the thing that a uniform number in (0, 1) stands for.
func (z Zipf) At(p float64) int {
	k := int(p * float64(z.n))
	if z.upTo != nil {
		k = sort.SearchFloat64s(z.upTo, p)
	}
	return min(k, z.n-1)
}
