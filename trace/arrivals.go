package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

// The distributions of gaps in [Arrivals].
const (
	Constant = "constant" // equal gaps
	Poisson  = "poisson"  // exponential gaps
	Gamma    = "gamma"    // gamma-distributed gaps
)

// Distributions returns all distributions of gaps.
func Distributions() []string { return []string{Constant, Poisson, Gamma} }

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
	case !slices.Contains(Distributions(), a.Distribution):
		return fmt.Errorf("arrival distribution must be one of %s: %q", strings.Join(Distributions(), ", "), a.Distribution)
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
	return transform(reqs, func() func(*Request) bool {
		next := a.arrivals()
		return func(r *Request) bool {
			if r.Timestamp.Set || !r.Delay.Set {
				r.Timestamp = Some(next())
			}
			return true
		}
	})
}

// RetimeSessions replaces the starts of sessions, in the order of their first rows; the
// first is at 0. The other rows of a session are shifted with its first row; see
// [Graph.First] for what a session is. It holds the trace in memory from the first row
// of a session on. a must pass [Arrivals.Check].
func RetimeSessions(reqs Requests, a Arrivals) Requests {
	return func(yield func(Request, error) bool) {
		begin := a.arrivals()
		var held []Request
		var builder GraphBuilder
		defer builder.Close()
		for r, err := range reqs {
			if err != nil {
				yield(Request{}, err)
				return
			}
			if held != nil || inSession(r) {
				builder.Add(r, 0)
				held = append(held, r)
				continue
			}
			if r.Timestamp = Some(begin()); !yield(r, nil) {
				return
			}
		}
		graph, err := builder.Graph()
		if err != nil {
			yield(Request{}, err)
			return
		}
		shifts := map[int]Opt[float64]{} // of sessions, by first row, once a row has a timestamp
		for row, r := range held {
			held[row] = Request{}
			session := graph.First(row)
			switch shift := shifts[session]; {
			case row == session:
				at := begin()
				shifts[session] = Opt[float64]{at - r.Timestamp.Value, true}
				r.Timestamp = Some(at)
			case r.Timestamp.Set:
				r.Timestamp.Value = max(0, r.Timestamp.Value+shift.Value)
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// arrivals returns a function that draws one arrival after the other, in milliseconds;
// the first is 0.
func (a Arrivals) arrivals() func() float64 {
	if a.AtOnce() {
		return func() float64 { return 0 }
	}
	gap, at := a.gaps(), -1.0
	return func() float64 {
		if at < 0 {
			at = 0
		} else {
			at += gap()
		}
		return at
	}
}

// ScaleDelays multiplies think times and tool times by a factor each, then limits think
// times to most milliseconds if most is above 0. Delays without a kind are think times.
func ScaleDelays(reqs Requests, think, tool, most float64) Requests {
	return change(reqs, func(r *Request) {
		switch {
		case r.DelayKind == Tool:
			r.Delay.Value *= tool
		default:
			r.Delay.Value *= think
			if most > 0 {
				r.Delay.Value = min(r.Delay.Value, most)
			}
		}
	})
}

// Speed divides arrivals and delays by x, which must be above 0: the trace plays
// x times as fast.
func Speed(reqs Requests, x float64) Requests {
	return change(reqs, func(r *Request) {
		r.Timestamp.Value /= x
		r.Delay.Value /= x
	})
}

// Rebase shifts arrivals so that the first is at 0.
func Rebase(reqs Requests) Requests {
	return transform(reqs, func() func(*Request) bool {
		var origin Opt[float64]
		return func(r *Request) bool {
			if r.Timestamp.Set {
				if !origin.Set {
					origin = r.Timestamp
				}
				r.Timestamp.Value -= origin.Value
			}
			return true
		}
	})
}

// Ramp makes the arrival rate grow linearly from 0 to that of the trace during the
// first full milliseconds (above 0). It stretches the first full/2 ms of the trace
// over that time: by t < full, the rows of the first t*t/(2*full) ms have arrived.
// Later rows keep their gaps; delays do not change. No row is dropped, and Poisson
// arrivals remain a Poisson process with a growing rate.
func Ramp(reqs Requests, full float64) Requests {
	return change(reqs, func(r *Request) {
		switch at := r.Timestamp.Value; {
		case !r.Timestamp.Set || at <= 0:
		case at < full/2:
			r.Timestamp.Value = math.Sqrt(2 * full * at)
		default:
			r.Timestamp.Value = at + full/2
		}
	})
}

// AtOnce makes every row arrive at 0: with a limit on requests in flight, a closed
// loop. A row with only a delay still follows its previous turn.
func AtOnce(reqs Requests) Requests {
	return change(reqs, func(r *Request) {
		if r.Timestamp.Set || !r.Delay.Set {
			r.Timestamp = Some(0.0)
		}
	})
}
