package trace

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Spread spreads the rows on each tick of a grid uniformly over the step up to
// the next tick, like a Poisson process with the same number of arrivals. Rows
// keep their order and move by at most one step. Timestamps off the grid are
// spread with their step; a row without a timestamp stays after its predecessor.
//
// A tick is assumed to be the start of its step, as clocks round down. The rows
// must be in order of arrival. Spread holds the rows of one step; the same seed
// gives the same times.
func Spread(reqs Requests, g Grid, seed uint64) Requests {
	return func(yield func(Request, error) bool) {
		random := rand.New(rand.NewPCG(seed, 0x737072656164)) // "spread"
		var held []Request
		var times []float64
		flush := func(step float64) bool {
			g.drawTimes(times, step, random)
			next := 0
			for i := range held {
				if held[i].Timestamp.Set {
					held[i].Timestamp.Value = times[next]
					next++
				}
				if !yield(held[i], nil) {
					return false
				}
			}
			clear(held)
			held, times = held[:0], times[:0]
			return true
		}
		current := 0.0
		for r, err := range reqs {
			if err != nil {
				if flush(current) {
					yield(r, err)
				}
				return
			}
			if r.Timestamp.Set {
				step := g.stepOf(r.Timestamp.Value)
				if step != current && !flush(current) {
					return
				}
				current = step
				times = append(times, r.Timestamp.Value)
			}
			held = append(held, r)
		}
		flush(current)
	}
}

// stepOf returns the number of the step of a time. A time slightly before a tick,
// within the tolerance, belongs to that tick.
func (g Grid) stepOf(ms float64) float64 {
	return math.Floor((ms-g.Offset)/g.Step + 2*gridTolerance)
}

// drawTimes replaces the times of one step. No time is below 0.
func (g Grid) drawTimes(times []float64, step float64, random *rand.Rand) {
	from, to := max(g.Offset+step*g.Step, 0), g.Offset+(step+1)*g.Step
	for i := range times {
		times[i] = from + random.Float64()*(to-from)
	}
	slices.Sort(times)
}
