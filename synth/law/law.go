// Package law holds the probability laws from which traces are drawn.
//
// A [Law] is its quantile function: a uniform number goes in, a value comes
// out. So every draw takes exactly one random number, bounds cut a law without
// drawing twice ([Within]), and two laws are tied together by tying their
// uniform numbers ([Correlate]).
//
// Uniform numbers come from [Places]: a value has a place, such as the third
// turn of session 7, and its number is a function of the seed, the aspect and
// that place alone. Nothing that is drawn elsewhere moves it. Where values have
// an order but no place, [Stream] gives a sequence.
package law

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Law is the distribution of a random number.
type Law interface {
	// Quantile returns the smallest x with CDF(x) >= p, for p in (0, 1). It
	// never decreases in p.
	Quantile(p float64) float64
	// CDF returns the probability of a value of at most x.
	CDF(x float64) float64
}

// MinP is the smallest number that [Places] gives, and 1-MinP the largest.
const MinP = 1.0 / (1 << 53)

// Least is the smallest value that can be drawn from l. Laws without a lower
// bound have one here, because uniform numbers have finitely many digits: eight
// standard deviations below the mean for a normal law.
func Least(l Law) float64 { return l.Quantile(MinP) }

// Most is the largest value that can be drawn from l.
func Most(l Law) float64 { return l.Quantile(1 - MinP) }

// Fixed always has the same value.
type Fixed float64

func (f Fixed) Quantile(float64) float64 { return float64(f) }
func (f Fixed) CDF(x float64) float64    { return step(x >= float64(f)) }

// Uniform has every value from Low to High with the same density; Low < High.
type Uniform struct{ Low, High float64 }

func (u Uniform) Quantile(p float64) float64 { return u.Low + p*(u.High-u.Low) }
func (u Uniform) CDF(x float64) float64 {
	return min(max((x-u.Low)/(u.High-u.Low), 0), 1)
}

// Normal is the bell curve; Std > 0.
type Normal struct{ Mean, Std float64 }

func (n Normal) Quantile(p float64) float64 { return n.Mean + n.Std*mathext.NormalQuantile(p) }
func (n Normal) CDF(x float64) float64      { return phi((x - n.Mean) / n.Std) }

// phi is the standard normal CDF.
func phi(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// Lognormal has a logarithm with a [Normal] law of mean Mu and standard
// deviation Sigma > 0.
type Lognormal struct{ Mu, Sigma float64 }

// NewLognormal returns the lognormal law of a mean > 0 and a coefficient of
// variation (standard deviation / mean) > 0.
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
	return phi((math.Log(x) - l.Mu) / l.Sigma)
}

// Weibull has the survival function exp(-(x/Scale)^Shape); both > 0. A shape
// of 1 is the exponential law.
type Weibull struct{ Shape, Scale float64 }

// Exponential is the law of waiting for what comes at random; mean > 0.
func Exponential(mean float64) Weibull { return Weibull{Shape: 1, Scale: mean} }

// NewWeibull returns the Weibull law of a mean > 0 and a coefficient of
// variation from 0.01 to 20, in which it falls steadily with the shape.
func NewWeibull(mean, cv float64) Weibull {
	// E X^n = Scale^n Gamma(1+n/Shape)
	tooEven := func(shape float64) bool {
		second, _ := math.Lgamma(1 + 2/shape)
		first, _ := math.Lgamma(1 + 1/shape)
		return math.Expm1(second-2*first) < cv*cv
	}
	low, high := 0.05, 200.0
	for range 60 {
		if middle := math.Sqrt(low * high); tooEven(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return Weibull{Shape: low, Scale: mean / math.Gamma(1+1/low)}
}

func (w Weibull) Quantile(p float64) float64 {
	e := -math.Log1p(-p)
	if w.Shape != 1 {
		e = math.Pow(e, 1/w.Shape)
	}
	return w.Scale * e
}

func (w Weibull) CDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return -math.Expm1(-math.Pow(x/w.Scale, w.Shape))
}

// Geometric counts tries up to and with the first success: 1, 2, 3, ... Its
// mean is at least 1.
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

func step(above bool) float64 {
	if above {
		return 1
	}
	return 0
}
