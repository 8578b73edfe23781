package diff

import (
	"math"

	mstats "github.com/montanaflynn/stats"
	"gonum.org/v1/gonum/stat"

	"moontide/trace"
	"moontide/trace/stats"
)

// When a queue grows, a delay of one request delays all later ones. The difference
// between two such sides is a random walk from 0: its values are correlated, but its
// steps from stretch to stretch are independent, so their variance determines the
// interval.

const (
	// minTrend is the correlation with time above which a latency rises through the
	// run. A stable queue exceeds it in about 1 % of runs.
	minTrend = 0.7
	// minStepCorrelation is the correlation of successive steps from which on
	// differences accumulate. It is 1/4 for means of a random walk, and -1/2 if the
	// stretches are independent, for example because prompts get longer.
	minStepCorrelation = -0.25
)

// queueingStep returns half the interval of one step between stretches, if the
// latency rises on both sides. All stretches inside a measurement window must have
// values.
func queueingStep(a, b *sample) (none trace.Opt[float64]) {
	if a == nil || b == nil {
		return none
	}
	var level, difference, time []float64
	for i := range stretches {
		if a.sums.counts[i] > 0 && b.sums.counts[i] > 0 {
			ofA, ofB := a.sums.of(i), b.sums.of(i)
			level, difference, time = append(level, ofA+ofB), append(difference, ofB-ofA), append(time, float64(i))
		}
	}
	n := len(time)
	if n < minStretches || time[n-1]-time[0] != float64(n-1) || !(stats.Pearson(level, time) > minTrend) {
		return none
	}
	steps := make([]float64, n-1)
	for i := range steps {
		steps[i] = difference[i+1] - difference[i]
	}
	if correlation, err := mstats.AutoCorrelation(steps, 1); err == nil && correlation < minStepCorrelation {
		return none
	}
	return trace.Some(studentsT(float64(n-2)) * stat.StdDev(steps, nil) * widening(steps))
}

// queueingHalfWidth returns half the interval of a value to which stretch i
// contributes parts[i] of its difference. A step shifts all later stretches, even if
// it occurs before the window.
func queueingHalfWidth(step float64, parts *[stretches]float64) float64 {
	squares, behind := 0., 0.
	for i := stretches - 1; i >= 0; i-- {
		behind += parts[i]
		squares += behind * behind
	}
	return step * math.Sqrt(squares)
}
