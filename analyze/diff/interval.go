package diff

import (
	"math"

	mstats "github.com/montanaflynn/stats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"moontide/trace"
	"moontide/trace/stats"
)

// Interval is a confidence interval at [Level].
type Interval struct{ Low, High float64 }

// Has reports whether x lies inside.
func (i Interval) Has(x float64) bool { return i.Low <= x && x <= i.High }

// around is the interval that reaches equally far to both sides of a value.
func around(value, half float64) Interval { return Interval{value - half, value + half} }

// interval is the interval of a measured value by the variation within runs: in a
// growing queue, where there is a step, by [queueingHalfWidth], else by the
// bootstrap. It is no narrower than runs, a half width from the variation between
// runs.
func (s statistic) interval(value, runs float64, step trace.Opt[float64], draws []weights) (found trace.Opt[Interval]) {
	switch {
	case step.Set && s.knownRising:
		found = trace.Some(around(value, queueingHalfWidth(step.Value, s.parts())))
	case !step.Set && s.known:
		found = s.bootstrap(value, draws)
	}
	if found.Set {
		found.Value = Interval{min(found.Value.Low, value-runs), max(found.Value.High, value+runs)}
	}
	return found
}

// bootstrap is the percentile interval.
func (s statistic) bootstrap(value float64, draws []weights) (none trace.Opt[Interval]) {
	whole := s.of(&once)
	deviations := make([]float64, 0, len(draws))
	for i := range draws {
		if x := s.of(&draws[i]); !math.IsNaN(x) && !math.IsInf(x, 0) {
			deviations = append(deviations, x-whole)
		}
	}
	// Some resamples may lack the value; if more than a few do, it is too rare.
	if math.IsNaN(whole) || 20*len(deviations) < 19*len(draws) {
		return none
	}
	jackknife, w := make([]float64, stretches), once
	for i := range jackknife { // without stretch i
		w[i] = 0
		jackknife[i] = s.of(&w)
		w[i] = 1
	}
	wider, d := widening(jackknife), stats.Of(deviations)
	return trace.Some(Interval{value + min(0, wider*d.Quantile(tail)), value + max(0, wider*d.Quantile(1-tail))})
}

// tail is the share of resamples beyond each end: that of a normal distribution
// beyond the end of Student's t interval for the mean of as many values. Without
// it an interval would be too narrow, as a standard deviation divided by n is too
// small.
var tail = distuv.UnitNormal.CDF(-studentsT(stretches-1) * math.Sqrt(stretches/(stretches-1.)))

// maxCorrelation bounds the correlation of neighbouring stretches. A run that
// drifts from beginning to end comes close to 1.
const maxCorrelation = 0.9

// widening is the factor by which an interval grows because neighbouring values
// are correlated.
func widening(values []float64) float64 {
	correlation, err := mstats.AutoCorrelation(values, 1)
	if err != nil || math.IsNaN(correlation) { // the values are equal, or one is unknown
		return 1
	}
	correlation += 1 / float64(len(values)) // of independent values it is -1/n on average
	correlation = min(max(0, correlation), maxCorrelation)
	return math.Sqrt((1 + correlation) / (1 - correlation))
}

// enoughRuns per side give an interval on their own.
const enoughRuns = 3

// runsHalfWidth is half the width of the interval of B - times A by the run values
// alone: with enough runs on both sides Welch's, else Student's with one variance
// for both sides. It is 0 if neither side has two runs.
func runsHalfWidth(a, b []float64, times float64) float64 {
	nA, nB := float64(len(a)), float64(len(b))
	if nA+nB <= 2 {
		return 0
	}
	squaresA, squaresB := times*times*nA*stat.PopVariance(a, nil), nB*stat.PopVariance(b, nil)
	freedom := nA + nB - 2
	variance := (squaresA + squaresB) / freedom * (1/nA + 1/nB)
	if min(nA, nB) >= enoughRuns && variance > 0 {
		varianceA, varianceB := squaresA/(nA-1)/nA, squaresB/(nB-1)/nB
		variance = varianceA + varianceB
		freedom = variance * variance / (varianceA*varianceA/(nA-1) + varianceB*varianceB/(nB-1))
	}
	return studentsT(freedom) * math.Sqrt(variance)
}

// studentsT is the number of standard deviations from the middle of an interval to
// its ends.
func studentsT(freedom float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(1 - (1-Level)/2)
}
