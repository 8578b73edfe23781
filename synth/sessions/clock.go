package sessions

import (
	"math"
	"slices"

	"moontide/trace"
)

// clock is the clock of a source. Its unit is a millisecond or, if there are ticks, a
// place of a tick.
type clock struct {
	// Ticks are the times in ms of a source whose requests mostly arrive several at a
	// time, in bursts or because time is coarse, and the time at which it is repeated.
	// Requests of one tick stay together.
	Ticks []float64 `json:"ticks_ms"`
	// Spacing are gaps in ms between the requests of one tick, in order; none if all are 0.
	Spacing []float64 `json:"spacing_ms"`
	PerMs   float64   `json:"times_per_ms"` // drawn times are multiples of 1/PerMs ms
	Exact   bool      `json:"exact_gaps"`   // a coarse clock: gaps keep their values
	Period  float64   `json:"period"`       // when the source is repeated, in units
}

const (
	wholeMs, microseconds = 1, 1000
	minVoid               = 5    // how many times as long gaps between bursts are
	maxSpacing            = 1000 // gaps between the requests of a tick that are kept
	places                = 4096 // units of a tick
)

// newClock returns the clock of rows of some sessions at sorted times in ms, the first of
// which is 0, and the times in its units. If some rows are untimed, these are estimates.
func newClock(times []float64, sessions []int, untimed bool) (c clock, units []float64) {
	last := times[len(times)-1]
	c.PerMs = wholeMs
	if untimed || slices.ContainsFunc(times, func(at float64) bool { return at != math.Round(at) }) {
		c.PerMs = microseconds
	}
	distinct := slices.Compact(slices.Clone(times))
	grid, found := trace.DetectGrid(distinct)
	c.Exact = found && !untimed
	step := 1 / c.PerMs
	if c.Exact && grid.Step == math.Round(grid.Step) {
		step = grid.Step
	}
	units = times
	if most := burstGap(times); most >= 0 && !untimed && areCommon(times, sessions, most) {
		units = c.divide(times, most)
		distinct = c.Ticks
	}
	again := last // when the source is repeated, in ms
	if n := len(distinct) - 1; n > 0 {
		again += max(1, math.Round(last/float64(n)/step)) * step
	}
	if c.Period = again; c.Ticks != nil {
		c.Exact, c.Period = true, float64(len(c.Ticks))*places
		c.Ticks = append(c.Ticks, again)
	}
	return c, units
}

// burstGap returns the longest gap between requests of one tick, or -1 if there are no
// ticks: at least half of the gaps are short, and the others are much longer.
func burstGap(times []float64) float64 {
	gaps := make([]float64, len(times)-1)
	for i := range gaps {
		gaps[i] = times[i+1] - times[i]
	}
	slices.Sort(gaps)
	if len(gaps) == 0 {
		return 0
	}
	few := len(gaps) / 100 // gaps that may be between short and long ones
	first := len(gaps) / 2
	for i := first; i+2*few < len(gaps)-1; i++ {
		if gaps[i+few+1] > minVoid*gaps[i] {
			return gaps[i]
		}
	}
	if gaps[first] == 0 {
		return 0
	}
	return none
}

// areCommon reports whether most bursts are of several sessions, rather than of one which
// sends several requests at once.
func areCommon(times []float64, sessions []int, most float64) bool {
	within, common := 0, 0
	for i := range sessions[1:] {
		if times[i+1]-times[i] <= most {
			if within++; sessions[i] != sessions[i+1] {
				common++
			}
		}
	}
	return 2*common >= within
}

// divide sets the ticks, before that of the repetition, and the spacing. It returns the times
// in units: the place of a request in its tick is that among the requests of the tick.
func (c *clock) divide(times []float64, most float64) (units []float64) {
	var first []int // requests of ticks
	for i, at := range times {
		if i == 0 || at-times[i-1] > most {
			first = append(first, i)
			c.Ticks = append(c.Ticks, at)
		} else {
			c.Spacing = append(c.Spacing, at-times[i-1])
		}
	}
	for tick, from := range first {
		to := len(times)
		if tick+1 < len(first) {
			to = first[tick+1]
		}
		for i := from; i < to; i++ {
			units = append(units, float64(tick*places+(i-from)*places/(to-from)))
		}
	}
	slices.Sort(c.Spacing)
	if n := len(c.Spacing); n > 0 && c.Spacing[n-1] == 0 {
		c.Spacing = nil
	} else if n > maxSpacing {
		for i := range maxSpacing {
			c.Spacing[i] = c.Spacing[i*n/maxSpacing]
		}
		c.Spacing = c.Spacing[:maxSpacing]
	}
	return units
}

// ms returns the time of a number of units, and that of the tick after it.
func (c *clock) ms(units float64) (at, next float64) {
	if c.Ticks == nil {
		return math.Round(units*c.PerMs) / c.PerMs, math.Inf(1)
	}
	last := len(c.Ticks) - 1
	tick := int(units / places)
	begin := float64(tick/last) * c.Ticks[last]
	return begin + c.Ticks[tick%last], begin + c.Ticks[tick%last+1]
}

// shifted returns a time of a session that began at a time of the source if it begins at
// another: as many ticks later, at the same place of that tick.
func (c *clock) shifted(at, from, to float64) float64 {
	if c.Ticks == nil {
		return to + at - from
	}
	tick := func(units float64) float64 { return math.Floor(units/places) * places }
	if later := tick(at) - tick(from); later > 0 {
		return tick(to) + later + at - tick(at)
	}
	return min(to+at-from, tick(to)+places-1)
}
