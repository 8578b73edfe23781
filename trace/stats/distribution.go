package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// Distribution is a probability distribution of one number. To sample it, pass
// a uniform random number to Quantile.
//
// The implementations agree with gonum's stat/distuv, but are exact to the last
// digit for probabilities near 0. The bytes of seeded traces depend on that.
type Distribution interface {
	// Quantile returns the smallest x with CDF(x) >= p, for p in (0, 1). It
	// never decreases in p.
	Quantile(p float64) float64
	// CDF returns the probability of a value of at most x.
	CDF(x float64) float64
}

// MinP is the smallest uniform number that [Indexed] returns; 1-MinP is the
// largest.
const MinP = 1.0 / (1 << 53)

// Lowest returns the smallest value that can be drawn from d. It is finite even
// for unbounded distributions: for a normal one, eight standard deviations below
// the mean.
func Lowest(d Distribution) float64 { return d.Quantile(MinP) }

// Highest returns the largest value that can be drawn from d.
func Highest(d Distribution) float64 { return d.Quantile(1 - MinP) }

// Fixed is a constant.
type Fixed float64

func (f Fixed) Quantile(float64) float64 { return float64(f) }

func (f Fixed) CDF(x float64) float64 {
	if x >= float64(f) {
		return 1
	}
	return 0
}

// Uniform is the continuous uniform distribution on [Low, High]; Low < High.
type Uniform struct{ Low, High float64 }

func (u Uniform) Quantile(p float64) float64 { return u.Low + p*(u.High-u.Low) }
func (u Uniform) CDF(x float64) float64 {
	return min(max((x-u.Low)/(u.High-u.Low), 0), 1)
}

// Normal is the normal distribution; Std > 0.
type Normal struct{ Mean, Std float64 }

func (n Normal) Quantile(p float64) float64 { return n.Mean + n.Std*mathext.NormalQuantile(p) }
func (n Normal) CDF(x float64) float64      { return normalCDF((x - n.Mean) / n.Std) }

// normalCDF is the CDF of the standard normal distribution.
func normalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// Lognormal is the distribution of exp(X) for X normal with mean Mu and
// standard deviation Sigma > 0.
type Lognormal struct{ Mu, Sigma float64 }

// NewLognormal returns the lognormal distribution with a mean > 0 and a
// coefficient of variation (standard deviation / mean) > 0.
func NewLognormal(mean, cv float64) Lognormal {
	variance := math.Log1p(cv * cv)
	return Lognormal{Mu: math.Log(mean) - variance/2, Sigma: math.Sqrt(variance)}
}

func (l Lognormal) Quantile(p float64) float64 {
	return math.Exp(l.Mu + l.Sigma*mathext.NormalQuantile(p))
}

func (l Lognormal) CDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return normalCDF((math.Log(x) - l.Mu) / l.Sigma)
}

// Exponential is the exponential distribution with a mean > 0.
type Exponential float64

func (e Exponential) Quantile(p float64) float64 { return float64(e) * -math.Log1p(-p) }

func (e Exponential) CDF(x float64) float64 { return -math.Expm1(-max(x, 0) / float64(e)) }

// Geometric is the number of trials up to and including the first success: 1,
// 2, 3, ... Its mean is at least 1.
type Geometric struct{ Mean float64 }

func (g Geometric) Quantile(p float64) float64 {
	if g.Mean == 1 {
		return 1
	}
	return max(math.Ceil(math.Log1p(-p)/math.Log1p(-1/g.Mean)), 1)
}

func (g Geometric) CDF(x float64) float64 {
	if x < 1 {
		return 0
	}
	return 1 - math.Pow(1-1/g.Mean, math.Floor(x))
}

// Truncate returns d conditioned on a value in [low, high], as if values
// outside were drawn again. Mass is the probability that d gives to the
// interval; if it is 0, there is no truncated distribution.
func Truncate(d Distribution, low, high float64) (truncated Distribution, mass float64) {
	below := 0.0
	if !math.IsInf(low, -1) {
		below = d.CDF(math.Nextafter(low, math.Inf(-1)))
	}
	mass = d.CDF(high) - below
	return truncation{d, low, high, below, mass}, mass
}

type truncation struct {
	of          Distribution
	low, high   float64
	below, mass float64 // probabilities left of the interval and in it
}

func (t truncation) Quantile(p float64) float64 {
	p = min(max(t.below+p*t.mass, MinP), 1-MinP)
	return min(max(t.of.Quantile(p), t.low), t.high)
}

func (t truncation) CDF(x float64) float64 {
	switch {
	case x < t.low:
		return 0
	case x >= t.high:
		return 1
	}
	return min(max((t.of.CDF(x)-t.below)/t.mass, 0), 1)
}

// Rounded is the distribution of a value rounded to the nearest integer.
type Rounded struct{ Distribution }

func (r Rounded) Quantile(p float64) float64 { return math.Floor(r.Distribution.Quantile(p) + 0.5) }
func (r Rounded) CDF(x float64) float64 {
	return r.Distribution.CDF(math.Nextafter(math.Floor(x)+0.5, math.Inf(-1)))
}

// Correlate turns independent uniform numbers p and q into a uniform number
// with the given rank (Spearman) correlation to p, in -1..1, by a Gaussian
// copula.
func Correlate(p, q, rank float64) float64 {
	if rank == 0 {
		return q
	}
	// The correlation of the normal numbers (Pearson 1907).
	r := 2 * math.Sin(math.Pi*rank/6)
	z := r*mathext.NormalQuantile(p) + math.Sqrt(max(1-r*r, 0))*mathext.NormalQuantile(q)
	return min(max(normalCDF(z), MinP), 1-MinP)
}

// Component is a distribution and its weight in a [Mixture].
type Component struct {
	Weight       float64
	Distribution Distribution
}

// Mixture is a weighted mixture of distributions.
type Mixture struct {
	components []Component
	knots      []float64 // quantiles at 0, 1/256, ..., 1: brackets for the search
}

// NewMixture returns the mixture of at least one component; the weights are
// above 0 and add up to 1.
func NewMixture(components []Component) Mixture {
	m := Mixture{components: components}
	knots := make([]float64, 257)
	for i := range knots {
		p := min(max(float64(i)/256, MinP), 1-MinP)
		low, high := math.Inf(1), math.Inf(-1)
		for _, c := range components {
			low, high = min(low, c.Distribution.Quantile(p)), max(high, c.Distribution.Quantile(p))
		}
		knots[i] = m.search(p, low, high)
	}
	m.knots = knots
	return m
}

func (m Mixture) CDF(x float64) float64 {
	var sum float64
	for _, c := range m.components {
		sum += c.Weight * c.Distribution.CDF(x)
	}
	return sum
}

// Quantile inverts the CDF numerically, to 12 digits.
func (m Mixture) Quantile(p float64) float64 {
	i := int(p * 256)
	return m.search(p, m.knots[i], m.knots[i+1])
}

// search finds the quantile between low and high by bisection.
func (m Mixture) search(p, low, high float64) float64 {
	if m.CDF(low) >= p {
		return low
	}
	for tolerance := 1e-12 * max(math.Abs(low), math.Abs(high)); high-low > tolerance; {
		if x := low + (high-low)/2; x <= low || x >= high {
			break
		} else if m.CDF(x) < p {
			low = x
		} else {
			high = x
		}
	}
	return high
}

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
