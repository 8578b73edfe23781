package analyze

import (
	"math"

	"moontide/trace"
)

// maxPoints bounds a series: more than a plot has room for says nothing more.
const maxPoints = 500

// Series is the number of arrivals in each of successive windows.
type Series struct {
	// Step is the width of a window in milliseconds: a round number, or where
	// timestamps lie on a grid a round number of its steps, so that no window has
	// more ticks than another. It is the smallest such that gives at
	// most 500 windows.
	Step float64
	// Start is where the first window begins, in milliseconds since the trace
	// began: at a multiple of Step, or half a step of the grid before a tick, so
	// that who comes a little early still falls into the window of that tick.
	Start float64
	// Counts has a number of arrivals for each window; the last is the one with
	// the last arrival. Windows include their begin and not their end.
	Counts []int
}

// roundSteps are the widths of windows that people read easily, in ms.
var roundSteps = []float64{
	1, 2, 5, 10, 20, 50, 100, 200, 500,
	1e3, 2e3, 5e3, 10e3, 15e3, 30e3, // seconds
	60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, // minutes
	3600e3, 7200e3, 10800e3, 21600e3, 43200e3, 86400e3, // hours
}

// seriesOf counts arrivals in order of time.
func seriesOf(sorted []float64, grid *trace.Grid) Series {
	first, last := sorted[0], sorted[len(sorted)-1]
	var s Series
	if grid != nil {
		s.Step = seriesStep(last-first, grid.Step)
		s.Start = grid.Tick(first) - grid.Step/2
	} else {
		s.Step = seriesStep(last-first, 1)
		s.Start = math.Floor(first/s.Step) * s.Step
	}
	for _, t := range sorted {
		window := int((t - s.Start) / s.Step)
		for len(s.Counts) <= window {
			s.Counts = append(s.Counts, 0)
		}
		s.Counts[window]++
	}
	return s
}

// seriesStep chooses the width of the windows of a duration as a round number of
// units, all in ms. One window more than the duration has room for may be
// needed, as windows begin before the first arrival.
func seriesStep(duration, unit float64) float64 {
	least := duration / unit / (maxPoints - 1)
	for _, step := range roundSteps {
		if step >= least {
			return unit * step
		}
	}
	const day = 86400e3
	return unit * day * math.Ceil(least/day)
}

// peak is the largest number of sorted times within any window of a width in ms,
// its end not included.
func peak(sorted []float64, width float64) int {
	most, begin := 0, 0
	for i, t := range sorted {
		for t-sorted[begin] >= width {
			begin++
		}
		most = max(most, i+1-begin)
	}
	return most
}

// dispersion is the variance of the numbers of sorted times in windows of a
// width in ms, over their mean.
func dispersion(sorted []float64, width float64) trace.Opt[float64] {
	first := sorted[0]
	windows := math.Floor((sorted[len(sorted)-1] - first) / width)
	if windows < 2 {
		return trace.Opt[float64]{}
	}
	// Empty windows add nothing to either sum, and need not be visited: a trace
	// of years has more of them than of requests.
	var sum, squares float64
	for i := 0; i < len(sorted); {
		window := math.Floor((sorted[i] - first) / width)
		if window >= windows {
			break
		}
		n := 0.0
		for i < len(sorted) && math.Floor((sorted[i]-first)/width) == window {
			n++
			i++
		}
		sum += n
		squares += n * n
	}
	mean := sum / windows
	return trace.Some((squares/windows - mean*mean) / mean)
}
