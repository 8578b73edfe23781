package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"moontide/trace"
)

// Interval is a confidence interval at [Level].
type Interval struct{ Low, High float64 }

// Has reports whether x lies inside.
func (i Interval) Has(x float64) bool { return i.Low <= x && x <= i.High }

// intervalOf is the interval of something that any resample has, around the value
// that was measured.
func intervalOf(value float64, draws []weights, of func(w *weights) float64) (none trace.Opt[Interval]) {
	whole := of(&once)
	deviations := make([]float64, 0, len(draws))
	for i := range draws {
		if x := of(&draws[i]); !math.IsNaN(x) && !math.IsInf(x, 0) {
			deviations = append(deviations, x-whole)
		}
	}
	// A resample may have nothing to tell; where that is common, none has much.
	if math.IsNaN(whole) || 20*len(deviations) < 19*len(draws) {
		return none
	}
	slices.Sort(deviations)
	wider := widening(of)
	at := func(p float64) float64 {
		rank := p * float64(len(deviations)-1)
		below := int(rank)
		low, high := deviations[below], deviations[min(below+1, len(deviations)-1)]
		return wider * (low + (rank-float64(below))*(high-low))
	}
	return trace.Some(Interval{value + min(0, at(tail)), value + max(0, at(1-tail))})
}

// tail is the share of resamples beyond each end: that of a normal distribution
// beyond where Student's t puts the end of a mean of as many values. Without it
// an interval would be too narrow, as a standard deviation that is divided by n
// is too small.
var tail = func() float64 {
	const n = stretches
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1 - Level) / 2)
	return distuv.UnitNormal.CDF(t * math.Sqrt(n/(n-1.)))
}()

// mostAlike bounds the correlation of neighbouring stretches. A run that drifts
// from its beginning to its end comes close to 1.
const mostAlike = 0.9

// widening is what an interval is multiplied by because a stretch is like the
// one before it. The resamples, which draw them apart, do not know that.
func widening(of func(w *weights) float64) float64 {
	var values [stretches]float64 // without the stretch
	mean := 0.
	for i := range values {
		w := once
		w[i] = 0
		values[i] = of(&w)
		mean += values[i] / stretches
	}
	squares, products := 0., 0.
	for i, v := range values {
		squares += (v - mean) * (v - mean)
		if i > 0 {
			products += (v - mean) * (values[i-1] - mean)
		}
	}
	if !(squares > 0) {
		return 1
	}
	// Of independent values it would be -1/n on average.
	alike := min(max(0, products/squares+1./stretches), mostAlike)
	return math.Sqrt((1 + alike) / (1 - alike))
}

// spreadOfRuns is half the width of the interval that the runs' values give on
// their own, by Student's t with one standard deviation for both sides. It is 0
// where no side has two runs.
func spreadOfRuns(a, b []trace.Opt[float64]) float64 {
	squares := 0.
	for _, runs := range [][]trace.Opt[float64]{a, b} {
		mean := 0.
		for _, v := range runs {
			mean += v.Value / float64(len(runs))
		}
		for _, v := range runs {
			squares += (v.Value - mean) * (v.Value - mean)
		}
	}
	free := float64(len(a) + len(b) - 2)
	if free == 0 {
		return 0
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: free}.Quantile(1 - (1-Level)/2)
	return t * math.Sqrt(squares/free*(1/float64(len(a))+1/float64(len(b))))
}

// noNarrower is the interval, made to reach as far as spread on either side of the
// value.
func noNarrower(i trace.Opt[Interval], value, spread float64) trace.Opt[Interval] {
	i.Value = Interval{min(i.Value.Low, value-spread), max(i.Value.High, value+spread)}
	return i
}
