package trace

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// The distributions of gaps in [Arrivals].
const (
	Constant = "constant" // equal gaps
	Poisson  = "poisson"  // exponential gaps
	Gamma    = "gamma"    // gamma-distributed gaps
)

// Arrivals is a renewal process: independent inter-arrival gaps from one
// distribution. Gaps are not rescaled to hit the rate exactly.
type Arrivals struct {
	Distribution string
	Rate         float64 // requests a second, above 0; +Inf is all at once
	// Burstiness is the shape of Gamma, above 0: 1 is Poisson, below 1 bursty,
	// above 1 more even (CV = 1/sqrt(Burstiness)).
	Burstiness float64
	Seed       uint64
}

// Check returns an error that names the first field that is out of range.
func (a Arrivals) Check() error {
	switch {
	case !(a.Rate > 0):
		return fmt.Errorf("arrival rate must be a positive number: %v", a.Rate)
	case a.Distribution != Constant && a.Distribution != Poisson && a.Distribution != Gamma:
		return fmt.Errorf("arrival distribution must be %s, %s or %s: %q", Constant, Poisson, Gamma, a.Distribution)
	case a.Distribution == Gamma && (!(a.Burstiness > 0) || math.IsInf(a.Burstiness, 0)):
		return fmt.Errorf("burstiness must be a positive number: %v", a.Burstiness)
	}
	return nil
}

// AtOnce reports whether all rows arrive at 0.
func (a *Arrivals) AtOnce() bool { return a != nil && math.IsInf(a.Rate, 1) }

// gaps returns a function that draws the gaps in milliseconds.
func (a Arrivals) gaps() func() float64 {
	mean := 1000 / a.Rate
	source := rand.NewPCG(a.Seed, 0x6172726976616c73) // "arrivals"
	switch a.Distribution {
	case Poisson:
		random := rand.New(source)
		return func() float64 { return mean * random.ExpFloat64() }
	case Gamma:
		// Shape b and rate b/mean have this mean.
		gamma := distuv.Gamma{Alpha: a.Burstiness, Beta: a.Burstiness / mean, Src: source}
		return gamma.Rand
	default:
		return func() float64 { return mean }
	}
}

// Retime replaces the arrivals of the rows, in their order; the first is at 0. A
// row with only a delay still follows its previous turn. a must pass
// [Arrivals.Check].
func Retime(reqs Requests, a Arrivals) Requests {
	return func(yield func(Request, error) bool) {
		gap := a.gaps()
		next, first := 0.0, true
		for r, err := range reqs {
			if err == nil && (r.Timestamp.Set || !r.Delay.Set) {
				if !first {
					next += gap()
				}
				first = false
				r.Timestamp = Some(next)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
