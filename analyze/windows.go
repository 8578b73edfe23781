package analyze

import (
	"math"

	"moontide/trace"
)

// windowsFor returns the maximum number of windows in a [Series] of n arrivals: as
// many as have 4 arrivals on average, so that a figure of them shows the rate and
// not single arrivals, but not fewer than 20 or more than 500.
func windowsFor(n int) float64 { return float64(min(max(n/4, 20), 500)) }

// Series is the number of arrivals in successive windows.
type Series struct {
	// Step is the width of a window in milliseconds: the smallest round number, of
	// grid steps on a time grid, that gives at most 500 windows, or a quarter of the
	// number of arrivals, but at least 20.
	Step float64
	// Start is the start of the first window, in milliseconds: a multiple of Step,
	// or half a grid step before a tick.
	Start float64
	// Counts is the number of arrivals in each half-open window up to the last
	// arrival.
	Counts []int
}

// roundSteps lists human-readable window widths in ms.
var roundSteps = []float64{
	1, 2, 5, 10, 20, 50, 100, 200, 500,
	1e3, 2e3, 5e3, 10e3, 15e3, 30e3, // seconds
	60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, // minutes
	3600e3, 7200e3, 10800e3, 21600e3, 43200e3, 86400e3, // hours
}

// series counts arrivals.
func (sorted byTime) series(grid *trace.Grid) Series {
	first, last := sorted.at(0), sorted.at(sorted.len()-1)
	windows := windowsFor(sorted.len())
	var s Series
	if grid != nil {
		s.Step = seriesStep(last-first, grid.Step, windows)
		s.Start = grid.Tick(first) - grid.Step/2
	} else {
		s.Step = seriesStep(last-first, 1, windows)
		s.Start = math.Floor(first/s.Step) * s.Step
	}
	for i := range sorted.len() {
		(*counts)(&s.Counts).add(int((sorted.at(i)-s.Start)/s.Step), 1)
	}
	return s
}

// seriesStep chooses a window width for a duration, as a round number of units,
// all in ms. It leaves room for one more window, since windows begin before the
// first arrival.
func seriesStep(duration, unit, windows float64) float64 {
	least := duration / unit / (windows - 1)
	for _, step := range roundSteps {
		if step >= least {
			return unit * step
		}
	}
	const day = 86400e3
	return unit * day * math.Ceil(least/day)
}

// peak returns the most times in any half-open window of a width in ms.
func (sorted byTime) peak(width float64) int {
	most, begin := 0, 0
	for i := range sorted.len() {
		for sorted.at(i)-sorted.at(begin) >= width {
			begin++
		}
		most = max(most, i+1-begin)
	}
	return most
}

// dispersion returns the variance of the number of times per window of a
// width in ms, over its mean.
func (sorted byTime) dispersion(width float64) trace.Opt[float64] {
	first := sorted.at(0)
	windows := math.Floor((sorted.at(sorted.len()-1) - first) / width)
	if windows < 2 {
		return trace.Opt[float64]{}
	}
	// Skip empty windows, which add nothing to either sum: a trace that spans years
	// has more of them than requests.
	var sum, squares float64
	for i := 0; i < sorted.len(); {
		window := math.Floor((sorted.at(i) - first) / width)
		if window >= windows {
			break
		}
		n := 0.0
		for i < sorted.len() && math.Floor((sorted.at(i)-first)/width) == window {
			n++
			i++
		}
		sum += n
		squares += n * n
	}
	mean := sum / windows
	return trace.Some((squares/windows - mean*mean) / mean)
}
