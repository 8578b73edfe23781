package diff

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"

	mstats "github.com/montanaflynn/stats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"moontide/trace"
	"moontide/trace/stats"
)

// stretches is the number of stretches of a run. Fewer are less correlated, but
// estimate the interval's width less well.
const stretches = 32

const (
	// An interval needs at least minStretches stretches with a value, and minEvents
	// with a deciding value, such as one beyond a percentile.
	minStretches = 20
	minEvents    = 8
)

// weights holds how often each stretch occurs in a resample.
type weights [stretches]uint8

var once = weights(slices.Repeat([]uint8{1}, stretches))

func drawAll(seed uint64, resamples int) []weights {
	random := rand.New(rand.NewPCG(seed, 0x6d6f6f6e74696465))
	draws := make([]weights, resamples)
	for i := range draws {
		for range stretches {
			draws[i][random.IntN(stretches)]++
		}
	}
	return draws
}

// Interval is a confidence interval at [Level].
type Interval struct{ Low, High float64 }

// MarshalJSON writes the two ends.
func (i Interval) MarshalJSON() ([]byte, error) { return json.Marshal([]float64{i.Low, i.High}) }

// Has reports whether x is in the interval.
func (i Interval) Has(x float64) bool { return i.Low <= x && x <= i.High }

// statistic is a number that depends on the resample.
type statistic struct {
	of    func(w *weights) float64 // NaN if there is no value; nil if unknown
	known bool                     // enough stretches have values for an interval
}

// interval returns the percentile interval of a measured value.
func (s statistic) interval(value float64, draws []weights) (none trace.Opt[Interval]) {
	if !s.known {
		return none
	}
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

// byRuns returns Welch's interval around a value of B - times A from at least two run
// values of each side.
func byRuns(value float64, a, b []float64, times float64) Interval {
	part := func(values []float64) (variance, freedom float64) { // of the mean
		n := float64(len(values))
		variance = stat.Variance(values, nil) / n
		return variance, variance * variance / (n - 1)
	}
	varianceA, freedomA := part(a)
	varianceB, freedomB := part(b)
	squared := times * times
	variance := squared*varianceA + varianceB
	half := 0.0
	if variance > 0 {
		half = studentsT(variance*variance/(squared*squared*freedomA+freedomB)) * math.Sqrt(variance)
	}
	return Interval{value - half, value + half}
}

// studentsT returns the quantile for a two-sided interval at [Level].
func studentsT(freedom float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(1 - (1-Level)/2)
}
