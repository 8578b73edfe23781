package sessions

import (
	"math"
	"slices"

	"moontide/trace"
)

// clock is the clock of a source. Its unit is a millisecond or, if ticks is set, a tick.
type clock struct {
	// ticks are the times in ms of a source with several requests at most of its times.
	// Requests of one tick then stay together.
	ticks []float64
	perMs float64 // drawn times are multiples of 1/perMs ms
	exact bool    // a coarse clock: gaps keep their values
	// period is when the source is repeated, in units.
	period float64
}

const (
	minPerTick            = 3 // requests at a time for a clock of ticks
	wholeMs, microseconds = 1, 1000
)

// newClock returns the clock of sorted times in ms, the first of which is 0. With
// untimed rows, some of the times are estimates.
func newClock(times []float64, untimed bool) (c clock) {
	distinct := slices.Compact(slices.Clone(times))
	last := distinct[len(distinct)-1]
	c.perMs = wholeMs
	if slices.ContainsFunc(distinct, func(at float64) bool { return at != math.Round(at) }) || untimed {
		c.perMs = microseconds
	}
	grid, found := trace.DetectGrid(distinct)
	c.exact = found && !untimed
	step := 1 / c.perMs
	if c.exact && grid.Step == math.Round(grid.Step) {
		step = grid.Step
	}
	if c.period = last; len(distinct) > 1 {
		c.period += math.Max(1, math.Round(last/float64(len(distinct)-1)/step)) * step
	}
	if len(times) >= minPerTick*len(distinct) && !untimed {
		c.ticks, c.exact, c.period = append(distinct, c.period), true, float64(len(distinct))
	}
	return c
}

// units returns a time in units of the clock.
func (c *clock) units(ms float64) float64 {
	if c.ticks == nil {
		return ms
	}
	tick, _ := slices.BinarySearch(c.ticks, ms)
	return float64(tick)
}

// ms returns the time of a number of units.
func (c *clock) ms(units float64) float64 {
	if c.ticks == nil {
		return math.Round(units*c.perMs) / c.perMs
	}
	last := len(c.ticks) - 1
	tick := int(units)
	return float64(tick/last)*c.ticks[last] + c.ticks[tick%last]
}
