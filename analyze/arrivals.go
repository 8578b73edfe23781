package analyze

import (
	"cmp"
	"math"
	"slices"

	"moontide/trace"
	"moontide/trace/stats"
)

// Arrivals is when requests come. It covers the rows that have a timestamp, in
// order of time; a later turn of a session that only follows the turn before
// it has none, and is left out.
type Arrivals struct {
	// Requests is the number of rows with a timestamp.
	Requests int
	// First and Last are the earliest and the latest arrival, in milliseconds
	// since the trace began.
	First, Last float64
	// Rate is Requests over the time from First to Last, in requests per
	// second; absent where all arrive at once.
	Rate trace.Opt[float64]
	// Gaps are the times between successive arrivals in milliseconds.
	Gaps stats.Sample
	// Backwards is the number of rows that come before the row above them. All
	// here is of the sorted times; whoever goes by the order of rows (caches,
	// sessions) sees another order than the clock's.
	Backwards int
	// CV is the coefficient of variation of Gaps, their population standard
	// deviation over their mean: 0 for a clock, about 1 for a Poisson process,
	// more for bursts. It is absent with fewer than two gaps or where all
	// requests arrive at once.
	CV trace.Opt[float64]
	// DistinctTimestamps counts the different arrival times and MostAtOnce the
	// requests at the one that has the most.
	DistinctTimestamps, MostAtOnce int
	// Peak1s and Peak60s are the most requests that arrive within any 1 s and
	// any 60 s, wherever that window begins; it does not include its end.
	Peak1s, Peak60s int
	// Dispersion1s and Dispersion60s are the index of dispersion for counts: the
	// population variance of the numbers of arrivals in windows of 1 s and 60 s,
	// over their mean. It is about 1 for a Poisson process at any window, and
	// grows with the window where the rate itself varies slowly. The windows lie
	// side by side from First on, up to the last that ends by Last; it is absent
	// with fewer than two.
	Dispersion1s, Dispersion60s trace.Opt[float64]
	// Grid is the clock that timestamps follow; nil where they follow none, or
	// one of a millisecond.
	Grid *trace.Grid
	// Series is the rate over time.
	Series Series

	sorted []arrival
}

// arrival is when a request came and the length of its answer.
type arrival struct {
	at  float64
	osl int32
}

// Duration is the time from the first to the last arrival, in milliseconds.
func (a *Arrivals) Duration() float64 { return a.Last - a.First }

// arrivalsOf is nil where no row has a timestamp.
func arrivalsOf(rows []row) *Arrivals {
	sorted := make([]arrival, 0, len(rows))
	for _, r := range rows {
		if !math.IsNaN(r.at) {
			sorted = append(sorted, arrival{r.at, r.osl})
		}
	}
	n := len(sorted)
	if n == 0 {
		return nil
	}
	backwards := 0
	for i := range n - 1 {
		if sorted[i+1].at < sorted[i].at {
			backwards++
		}
	}
	if backwards > 0 {
		slices.SortStableFunc(sorted, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	}
	times := make([]float64, n)
	for i, a := range sorted {
		times[i] = a.at
	}
	a := &Arrivals{Requests: n, First: times[0], Last: times[n-1], Backwards: backwards, sorted: sorted}
	a.DistinctTimestamps, a.MostAtOnce = countTimestamps(times)
	a.Peak1s, a.Peak60s = peak(times, 1000), peak(times, 60_000)
	a.Dispersion1s, a.Dispersion60s = dispersion(times, 1000), dispersion(times, 60_000)
	if g, ok := trace.DetectGrid(times); ok {
		a.Grid = &g
	}
	a.Series = seriesOf(times, a.Grid)
	a.Gaps = stats.Of(gapsOf(times))
	if a.Duration() > 0 {
		a.Rate = trace.Some(float64(n) / (a.Duration() / 1000))
		if a.Gaps.Count > 1 {
			a.CV = trace.Some(a.Gaps.Std / a.Gaps.Mean)
		}
	}
	return a
}

func countTimestamps(sorted []float64) (distinct, mostAtOnce int) {
	atOnce := 0
	for i, t := range sorted {
		if i == 0 || t != sorted[i-1] {
			distinct++
			atOnce = 0
		}
		atOnce++
		mostAtOnce = max(mostAtOnce, atOnce)
	}
	return distinct, mostAtOnce
}

func gapsOf(sorted []float64) []float64 {
	gaps := make([]float64, len(sorted)-1)
	for i := range gaps {
		gaps[i] = sorted[i+1] - sorted[i]
	}
	return gaps
}
