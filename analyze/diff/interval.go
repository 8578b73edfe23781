package diff

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
	for i := range values {
		w := once
		w[i] = 0
		values[i] = of(&w)
	}
	squares, alike := likeness(values[:])
	if !(squares > 0) {
		return 1
	}
	return widerBy(alike + 1./stretches) // of independent values it would be -1/n on average
}

// widerBy is what an interval of values is multiplied by when each is like the
// one before it.
func widerBy(alike float64) float64 {
	alike = min(max(0, alike), mostAlike)
	return math.Sqrt((1 + alike) / (1 - alike))
}

// enoughRuns a side make an interval on their own.
const enoughRuns = 3

// runs are the values that each run of a side measured.
type runs []trace.Opt[float64]

// spread is the mean of the runs and the squares of what they are from it.
func (r runs) spread() (squares float64) {
	values := make([]float64, len(r))
	for i, v := range r {
		values[i] = v.Value
	}
	squares, _ = likeness(values)
	return squares
}

// welch is half the width of the interval that the runs' values alone give of
// B - times A, by Student's t with a standard deviation for each side and
// Welch's degrees of freedom.
func welch(a, b runs, times float64) float64 {
	variance := func(r runs) (of, free float64) {
		n := float64(len(r))
		return r.spread() / (n - 1) / n, n - 1
	}
	ofA, freeA := variance(a)
	ofB, freeB := variance(b)
	ofA *= times * times
	if ofA+ofB == 0 {
		return 0
	}
	free := (ofA + ofB) * (ofA + ofB) / (ofA*ofA/freeA + ofB*ofB/freeB)
	return studentsT(free) * math.Sqrt(ofA+ofB)
}

// spreadOfRuns is the same for as few runs as two on one side, by Student's t
// with one standard deviation for both sides. It is 0 where no side has two runs.
func spreadOfRuns(a, b runs, times float64) float64 {
	free := float64(len(a) + len(b) - 2)
	if free == 0 {
		return 0
	}
	variance := (times*times*a.spread() + b.spread()) / free
	return studentsT(free) * math.Sqrt(variance*(1/float64(len(a))+1/float64(len(b))))
}

// studentsT is how many standard deviations either end of an interval is away.
func studentsT(free float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: free}.Quantile(1 - (1-Level)/2)
}

// about is the interval that reaches as far to either side of a value.
func about(value, half float64) Interval { return Interval{value - half, value + half} }

// noNarrower is the interval, made to reach as far as spread on either side of the
// value.
func noNarrower(i trace.Opt[Interval], value, spread float64) trace.Opt[Interval] {
	if i.Set {
		i.Value = Interval{min(i.Value.Low, value-spread), max(i.Value.High, value+spread)}
	}
	return i
}
