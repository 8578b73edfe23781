package analyze

import (
	"math"

	"moontide/trace"
	"moontide/trace/stats"
)

// Arrivals describes when requests arrive, in order of time. It covers the rows with
// a timestamp, and those whose time is estimated because they have a delay instead; see
// [Untimed].
type Arrivals struct {
	// Requests is the number of rows covered, Estimated that of estimated times.
	Requests, Estimated int
	// First and Last are the earliest and the latest arrival in milliseconds.
	First, Last float64
	// Rate is Requests / (Last - First) in requests per second; absent if all
	// requests arrive at once.
	Rate trace.Opt[float64]
	// Gaps are the inter-arrival times in milliseconds.
	Gaps stats.Sample
	// Backwards is the number of rows with a timestamp before that of the row above. The
	// other numbers are computed from the sorted times; caches and sessions use the
	// row order.
	Backwards int
	// CV is the coefficient of variation of Gaps (population standard deviation
	// over mean): 0 for constant gaps, about 1 for a Poisson process, more for
	// bursts. It is absent with fewer than two gaps or if all requests arrive at
	// once.
	CV trace.Opt[float64]
	// DistinctTimestamps is the number of different timestamps, MostAtOnce the
	// number of requests at the most frequent one.
	DistinctTimestamps, MostAtOnce int
	// Peak1s and Peak60s are the most arrivals in any half-open window of 1 s and
	// 60 s.
	Peak1s, Peak60s int
	// Dispersion1s and Dispersion60s are the index of dispersion for counts: the
	// population variance of the arrivals per window of 1 s and 60 s over their
	// mean. It is about 1 for a Poisson process and grows with the window if the
	// rate drifts. It is absent with fewer than two windows from First to Last.
	Dispersion1s, Dispersion60s trace.Opt[float64]
	// Grid is the time grid of the timestamps; nil if there are no timestamps or
	// the grid is one millisecond.
	Grid *trace.Grid

	sorted byTime
}

// Duration returns the time from the first to the last arrival in milliseconds.
func (a *Arrivals) Duration() float64 { return a.Last - a.First }

// At returns the arrival of a row in milliseconds, absent if it is not covered.
func (a *Arrivals) At(row int) (none trace.Opt[float64]) {
	if a.Requests == 0 || !a.sorted.rows.at(row).timed {
		return none
	}
	return trace.Some(a.sorted.rows.at(row).ms)
}

// arrivalsOf returns nil if no row has a timestamp.
func arrivalsOf(rows *rows) *Arrivals {
	a := &Arrivals{sorted: sortByTime(rows)}
	n := a.sorted.len()
	if n == 0 {
		return nil
	}
	a.Requests, a.First, a.Last = n, a.sorted.at(0), a.sorted.at(n-1)
	a.countTimestamps(rows)
	a.Peak1s, a.Peak60s = a.sorted.peak(1000), a.sorted.peak(60_000)
	a.Dispersion1s, a.Dispersion60s = a.sorted.dispersion(1000), a.sorted.dispersion(60_000)
	var gaps stats.Collector
	for i := range n - 1 {
		gaps.Add(a.sorted.at(i+1) - a.sorted.at(i))
	}
	a.Gaps = gaps.Sample()
	if a.Duration() > 0 {
		a.Rate = trace.Some(float64(n) / (a.Duration() / 1000))
		if a.Gaps.Count > 1 {
			a.CV = trace.Some(a.Gaps.Std / a.Gaps.Mean)
		}
	}
	return a
}

// countTimestamps describes the times that are not estimated: the lengths of answers put the
// others on a grid that is not the trace's.
func (a *Arrivals) countTimestamps(rows *rows) {
	last := math.Inf(-1)
	for _, r := range rows.all {
		switch {
		case !r.timed:
		case r.estimated:
			a.Estimated++
		default:
			if r.ms < last {
				a.Backwards++
			}
			last = r.ms
		}
	}
	var grid trace.GridDetector
	atOnce, last := 0, math.Inf(-1)
	for i := range a.sorted.len() {
		r := a.sorted.row(i)
		if r.estimated {
			continue
		}
		grid.AddTime(r.ms)
		if r.ms != last {
			a.DistinctTimestamps++
			atOnce, last = 0, r.ms
		}
		atOnce++
		a.MostAtOnce = max(a.MostAtOnce, atOnce)
	}
	if g, _, ok := grid.Grid(); ok {
		a.Grid = &g
	}
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
	var sum, squares, within, last float64
	for i := range sorted.len() {
		window := math.Floor((sorted.at(i) - first) / width)
		if window >= windows {
			break
		}
		if window != last {
			within, last = 0, window
		}
		sum++
		squares += 2*within + 1 // by which the square of a count grows
		within++
	}
	mean := sum / windows
	return trace.Some((squares/windows - mean*mean) / mean)
}
