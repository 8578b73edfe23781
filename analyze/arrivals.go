package analyze

import (
	"slices"

	"github.com/montanaflynn/stats"

	"moontide/trace"
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
	// CV is the coefficient of variation of the times between successive
	// arrivals, their population standard deviation over their mean: 0 for a
	// clock, about 1 for a Poisson process, more for bursts. It is absent with
	// fewer than two such times or where all arrive at once.
	CV trace.Opt[float64]
	// DistinctTimestamps counts the different arrival times and MostAtOnce the
	// requests at the one that has the most.
	DistinctTimestamps, MostAtOnce int
}

// Duration is the time from the first to the last arrival, in milliseconds.
func (a *Arrivals) Duration() float64 { return a.Last - a.First }

// arrivalsAt describes timestamps in milliseconds, whose slice it sorts; nil
// for none.
func arrivalsAt(timestamps []float64) *Arrivals {
	n := len(timestamps)
	if n == 0 {
		return nil
	}
	slices.Sort(timestamps)
	a := &Arrivals{Requests: n, First: timestamps[0], Last: timestamps[n-1]}
	a.DistinctTimestamps, a.MostAtOnce = countTimestamps(timestamps)
	if a.Duration() > 0 {
		a.Rate = trace.Some(float64(n) / (a.Duration() / 1000))
		a.CV = variation(timestamps)
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

// variation is the coefficient of variation of the steps of sorted times that
// are not all equal.
func variation(sorted []float64) trace.Opt[float64] {
	if len(sorted) < 3 {
		return trace.Opt[float64]{}
	}
	steps := make([]float64, len(sorted)-1)
	for i := range steps {
		steps[i] = sorted[i+1] - sorted[i]
	}
	// The errors can only say that there are no steps.
	mean, _ := stats.Mean(steps)
	std, _ := stats.StandardDeviationPopulation(steps)
	return trace.Some(std / mean)
}
