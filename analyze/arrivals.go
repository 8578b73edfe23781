package analyze

import (
	"cmp"
	"math"
	"slices"

	"moontide/trace"
	"moontide/trace/stats"
)

// Arrivals describes when requests arrive. It covers the rows with a timestamp,
// in order of time; later turns of a session may have only a delay.
type Arrivals struct {
	// Requests is the number of rows with a timestamp.
	Requests int
	// First and Last are the earliest and the latest arrival in milliseconds.
	First, Last float64
	// Rate is Requests / (Last - First) in requests per second; absent if all
	// requests arrive at once.
	Rate trace.Opt[float64]
	// Gaps are the inter-arrival times in milliseconds.
	Gaps stats.Sample
	// Backwards is the number of rows that arrive before the previous row. The
	// other numbers are computed from the sorted times; caches and sessions use the
	// row order.
	Backwards int
	// CV is the coefficient of variation of Gaps (population standard deviation
	// over mean): 0 for constant gaps, about 1 for a Poisson process, more for
	// bursts. It is absent with fewer than two gaps or if all requests arrive at
	// once.
	CV trace.Opt[float64]
	// DistinctTimestamps is the number of different arrival times, MostAtOnce the
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
	// Series is the rate over time.
	Series Series

	sorted []arrival
}

// arrival is the time of a request and the length of its answer.
type arrival struct {
	at  float64
	osl int32
}

// Duration returns the time from the first to the last arrival in milliseconds.
func (a *Arrivals) Duration() float64 { return a.Last - a.First }

// arrivalsOf returns nil if no row has a timestamp.
func arrivalsOf(rows []row) *Arrivals {
	sorted := make([]arrival, 0, len(rows))
	backwards := 0
	for _, r := range rows {
		if math.IsNaN(r.at) {
			continue
		}
		if n := len(sorted); n > 0 && r.at < sorted[n-1].at {
			backwards++
		}
		sorted = append(sorted, arrival{r.at, r.osl})
	}
	n := len(sorted)
	if n == 0 {
		return nil
	}
	if backwards > 0 {
		slices.SortStableFunc(sorted, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	}
	times, gaps := make([]float64, n), make([]float64, n-1)
	for i, a := range sorted {
		times[i] = a.at
		if i > 0 {
			gaps[i-1] = a.at - times[i-1]
		}
	}
	a := &Arrivals{Requests: n, First: times[0], Last: times[n-1], Backwards: backwards, sorted: sorted}
	a.DistinctTimestamps, a.MostAtOnce = countTimestamps(times)
	a.Peak1s, a.Peak60s = peak(times, 1000), peak(times, 60_000)
	a.Dispersion1s, a.Dispersion60s = dispersion(times, 1000), dispersion(times, 60_000)
	if g, ok := trace.DetectGrid(times); ok {
		a.Grid = &g
	}
	a.Series = seriesOf(times, a.Grid)
	a.Gaps = stats.Of(gaps)
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
