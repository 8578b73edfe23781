package trace

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// The laws of [Arrivals].
const (
	Constant = "constant" // equal gaps
	Poisson  = "poisson"  // exponential gaps
	Gamma    = "gamma"    // gamma gaps of a given burstiness
)

// Arrivals is a renewal process: independent gaps of one law. Nothing rescales
// the gaps to hit the rate exactly, so their natural variance is kept.
type Arrivals struct {
	Law  string
	Rate float64 // requests a second, above 0
	// Burstiness is the shape of the gamma law: 1 is Poisson, below 1 comes in
	// bursts (CV = 1/sqrt(Burstiness)), above 1 is more even. Above 0; only
	// the gamma law reads it.
	Burstiness float64
	Seed       uint64
}

// Check returns an error that names the first field that is out of range.
func (a Arrivals) Check() error {
	switch {
	case !(a.Rate > 0) || math.IsInf(a.Rate, 0):
		return fmt.Errorf("arrival rate is not a positive number: %v", a.Rate)
	case a.Law != Constant && a.Law != Poisson && a.Law != Gamma:
		return fmt.Errorf("arrival law is not %s, %s or %s: %q", Constant, Poisson, Gamma, a.Law)
	case a.Law == Gamma && (!(a.Burstiness > 0) || math.IsInf(a.Burstiness, 0)):
		return fmt.Errorf("burstiness is not a positive number: %v", a.Burstiness)
	}
	return nil
}

// gaps returns the sequence of gaps in milliseconds, from its beginning.
func (a Arrivals) gaps() func() float64 {
	mean := 1000 / a.Rate
	source := rand.NewPCG(a.Seed, 0x6172726976616c73) // "arrivals"
	switch a.Law {
	case Poisson:
		random := rand.New(source)
		return func() float64 { return mean * random.ExpFloat64() }
	case Gamma:
		// Shape b and rate b/mean give the mean that was asked for.
		law := distuv.Gamma{Alpha: a.Burstiness, Beta: a.Burstiness / mean, Src: source}
		return law.Rand
	default:
		return func() float64 { return mean }
	}
}

// Retime gives the rows new arrivals in their order, the first at 0. A row
// that only has a delay keeps following the turn before it. [Arrivals.Check]
// must have passed.
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
