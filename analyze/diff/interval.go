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

// Has reports whether x is in the interval.
func (i Interval) Has(x float64) bool { return i.Low <= x && x <= i.High }

func around(value, half float64) Interval { return Interval{value - half, value + half} }

// interval returns the interval of a measured value from the variation within runs:
// in a growing queue, where step is set, by [queueingHalfWidth], otherwise by the
// bootstrap. runs is its least half width.
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

// bootstrap returns the percentile interval.
func (s statistic) bootstrap(value float64, draws []weights) (none trace.Opt[Interval]) {
	whole := s.of(&once)
	deviations := make([]float64, 0, len(draws))
	for i := range draws {
		if x := s.of(&draws[i]); !math.IsNaN(x) && !math.IsInf(x, 0) {
			deviations = append(deviations, x-whole)
		}
	}
	// A few resamples may lack a value; if more do, the value is too rare.
	if math.IsNaN(whole) || 20*len(deviations) < 19*len(draws) {
		return none
	}
	jackknife, w := make([]float64, stretches), once
	for i := range jackknife { // leave out stretch i
		w[i] = 0
		jackknife[i] = s.of(&w)
		w[i] = 1
	}
	wider, d := widening(jackknife), stats.Of(deviations)
	return trace.Some(Interval{value + min(0, wider*d.Quantile(tail)), value + max(0, wider*d.Quantile(1-tail))})
}

// tail is the share of resamples beyond each end of the interval, which corrects for
// the small number of stretches: that of a normal distribution beyond the end of a
// Student's t interval, with the standard deviation's divisor n.
var tail = distuv.UnitNormal.CDF(-studentsT(stretches-1) * math.Sqrt(stretches/(stretches-1.)))

// maxCorrelation bounds the correlation of stretches: a run that drifts has almost
// 1.
const maxCorrelation = 0.9

// widening returns the factor for the correlation of neighbouring values.
func widening(values []float64) float64 {
	correlation, err := mstats.AutoCorrelation(values, 1)
	if err != nil || math.IsNaN(correlation) { // the values are equal or one is NaN
		return 1
	}
	correlation += 1 / float64(len(values)) // for independent values the mean is -1/n
	correlation = min(max(0, correlation), maxCorrelation)
	return math.Sqrt((1 + correlation) / (1 - correlation))
}

// enoughRuns per side give the interval alone.
const enoughRuns = 3

// runsHalfWidth returns half the interval of B - times A from the run values:
// Welch's with enough runs on both sides, otherwise Student's with a pooled
// variance. It is 0 if neither side has two runs.
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

// studentsT returns the quantile for a two-sided interval at [Level].
func studentsT(freedom float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(1 - (1-Level)/2)
}
