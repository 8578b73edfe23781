package trace

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Spread gives the rows that arrive within one step of a grid times of their
// own, as a Poisson process has them that brings as many in that step: uniform
// over it, from its tick to the next. Rows keep their order, and none moves by
// more than a step. Strays are spread with the rest of their step; a row
// without a timestamp stays behind the row before it.
//
// How the recorder came by its ticks is not known: a time is taken for the
// beginning of its step, as clocks round down.
//
// It holds the rows of one step in memory. The rows must be in order of
// arrival; the same seed gives the same times.
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

// stepOf is the number of the step that a time is in. One that is early by no
// more than the tolerance of a tick is of that tick's step.
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
