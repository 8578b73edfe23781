package law

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// Empirical is the law of observed values: each is as likely as it was often.
type Empirical struct{ sorted []float64 }

// NewEmpirical returns the law of the values, at least one. It keeps the slice
// and sorts it.
func NewEmpirical(values []float64) Empirical {
	slices.Sort(values)
	return Empirical{values}
}

func (e Empirical) Quantile(p float64) float64 {
	i := int(p * float64(len(e.sorted)))
	return e.sorted[min(i, len(e.sorted)-1)]
}

func (e Empirical) CDF(x float64) float64 {
	upTo := sort.Search(len(e.sorted), func(i int) bool { return e.sorted[i] > x })
	return float64(upTo) / float64(len(e.sorted))
}

// Part is a law and its share of a mixture.
type Part struct {
	Share float64
	Law   Law
}

// Mixture draws from each of its parts as often as their shares say.
type Mixture struct {
	parts []Part
	knots []float64 // quantiles at 0, 1/256, ..., 1, to search between
}

// NewMixture returns the mixture of the parts, at least one, whose shares are
// above 0 and add up to 1.
func NewMixture(parts []Part) Mixture {
	m := Mixture{parts: parts}
	knots := make([]float64, 257)
	for i := range knots {
		p := min(max(float64(i)/256, MinP), 1-MinP)
		low, high := math.Inf(1), math.Inf(-1)
		for _, part := range parts {
			low, high = min(low, part.Law.Quantile(p)), max(high, part.Law.Quantile(p))
		}
		knots[i] = m.search(p, low, high)
	}
	m.knots = knots
	return m
}

func (m Mixture) CDF(x float64) float64 {
	var sum float64
	for _, part := range m.parts {
		sum += part.Share * part.Law.CDF(x)
	}
	return sum
}

// Quantile inverts the CDF, which has no closed form, to 12 digits.
func (m Mixture) Quantile(p float64) float64 {
	i := int(p * 256)
	return m.search(p, m.knots[i], m.knots[i+1])
}

// search finds the quantile between two values that enclose it: by false
// position (the Illinois rule), which is quick where the CDF is smooth, and in
// every fourth step by halves, which gets over jumps.
func (m Mixture) search(p, low, high float64) float64 {
	atLow, atHigh := m.CDF(low)-p, m.CDF(high)-p
	if atLow >= 0 {
		return low
	}
	close := 1e-12 * max(math.Abs(low), math.Abs(high))
	side := 0 // of the end that moved last
	for step := 1; high-low > close; step++ {
		x := low + (high-low)/2
		if step%4 != 0 {
			// Never nearer to an end than what counts as there.
			x = min(max(low-atLow*(high-low)/(atHigh-atLow), low+close/2), high-close/2)
		}
		if x <= low || x >= high {
			break
		}
		if at := m.CDF(x) - p; at >= 0 {
			high, atHigh = x, at
			if side == 1 {
				atLow /= 2
			}
			side = 1
		} else {
			low, atLow = x, at
			if side == -1 {
				atHigh /= 2
			}
			side = -1
		}
	}
	return high
}

// within is a law cut to an interval.
type within struct {
	law       Law
	low, high float64
	below     float64 // probability left of the interval
	mass      float64 // probability of the interval
}

// Within is the law under the condition that the value lies in [low, high]: as
// if values outside were drawn again, at the cost of none. Mass is the
// probability that l gives to the interval; where it is 0 there is no such law.
func Within(l Law, low, high float64) (cut Law, mass float64) {
	below := 0.0
	if !math.IsInf(low, -1) {
		below = l.CDF(math.Nextafter(low, math.Inf(-1)))
	}
	mass = l.CDF(high) - below
	return within{l, low, high, below, mass}, mass
}

func (w within) Quantile(p float64) float64 {
	p = min(max(w.below+p*w.mass, MinP), 1-MinP)
	return min(max(w.law.Quantile(p), w.low), w.high)
}

func (w within) CDF(x float64) float64 {
	switch {
	case x < w.low:
		return 0
	case x >= w.high:
		return 1
	}
	return min(max((w.law.CDF(x)-w.below)/w.mass, 0), 1)
}

// Whole is the law of a value rounded to the next integer.
type Whole struct{ Law }

func (w Whole) Quantile(p float64) float64 { return math.Floor(w.Law.Quantile(p) + 0.5) }
func (w Whole) CDF(x float64) float64 {
	return w.Law.CDF(math.Nextafter(math.Floor(x)+0.5, math.Inf(-1)))
}

// WholeMean is the mean of a law on the integers from low to high.
func WholeMean(l Law, low, high int) float64 {
	mean := float64(low)
	for k := low; k < high; k++ {
		mean += 1 - l.CDF(float64(k)) // the mean is the sum of P(X > k)
	}
	return mean
}

// Correlate ties a uniform number to another through a Gaussian copula: of
// independent p and q it makes a uniform number whose rank (Spearman)
// correlation with p is the given one, from -1 to 1. Laws keep their shapes,
// whatever is tied to them.
//
// A rank correlation of r is a correlation of 2 sin(pi r / 6) between the
// normal numbers (Pearson 1907).
func Correlate(p, q, rank float64) float64 {
	if rank == 0 {
		return q
	}
	r := 2 * math.Sin(math.Pi*rank/6)
	z := r*mathext.NormalQuantile(p) + math.Sqrt(max(1-r*r, 0))*mathext.NormalQuantile(q)
	return min(max(phi(z), MinP), 1-MinP)
}
