package fidelity

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"moontide/trace"
	"moontide/trace/stats"
)

// Measure is how a gap is measured.
type Measure string

// The measures.
const (
	KS         Measure = "ks"         // distance between two distributions (see [stats.KS]), shown with their medians
	LogRatio   Measure = "log_ratio"  // mean of |ln| of the ratio of their quantiles, shown with their medians
	Difference Measure = "difference" // of two shares
	Relative   Measure = "relative"   // to the source's value, which grows with its rate
)

// The outcomes of an aspect. It is not applicable if the source has no such values.
const Passed, Failed, NotApplicable = "pass", "fail", "n/a"

// Aspect is a property of a trace that is compared.
type Aspect struct {
	Key     string             `json:"key"`  // in files
	Name    string             `json:"name"` // in reports
	Measure Measure            `json:"gap_is"`
	Values  []Value            `json:"values"`
	Gap     trace.Opt[float64] `json:"gap"` // the largest of those of Values
	Floor   trace.Opt[float64] `json:"noise_floor"`
	Bound   float64            `json:"bound"`   // the largest gap that always passes
	Limit   trace.Opt[float64] `json:"limit"`   // the larger of Bound and twice Floor
	Outcome string             `json:"outcome"` // Passed, Failed or NotApplicable
	Reason  string             `json:"reason"`  // of an aspect without a gap
	lacks   string             // what a trace without values lacks
}

// Value is one of the values of an aspect.
type Value struct {
	Name   string             `json:"name"`
	Unit   string             `json:"unit"`
	Source trace.Opt[float64] `json:"source"`
	Drawn  trace.Opt[float64] `json:"drawn"`
	Gap    trace.Opt[float64] `json:"gap"`
	of     column
	per    column // if set, the value is the ratio of their means
}

// column appends numbers of a piece, NaN for unknown ones.
type column func(all []float64, p piece) []float64

// Aspects returns all aspects in the order of reports.
func Aspects() []Aspect {
	const noTime, noBlocks, tokens = "all requests arrive at once", "no block ids", "tokens"
	var curve []Value
	for i, percent := range cacheSizes {
		curve = append(curve, Value{Name: fmt.Sprintf("LRU hit rate at %g %%", percent), Unit: "%", of: each(hits + i), per: each(blocks)})
	}
	return []Aspect{
		{Key: "lengths", Name: "Lengths", Measure: KS, Bound: 0.03, Values: []Value{
			{Name: "ISL", Unit: tokens, of: each(isl)}, {Name: "OSL", Unit: tokens, of: each(osl)},
		}},
		{Key: "context", Name: "Shared context", Measure: KS, Bound: 0.03, lacks: noBlocks, Values: []Value{{Name: "Shared context", Unit: tokens, of: each(context)}}},
		{Key: "lru_curve", Name: "LRU curve", Measure: Difference, Bound: 0.03, lacks: noBlocks, Values: curve},
		{Key: "gaps", Name: "Gaps", Measure: LogRatio, Bound: 0.1, lacks: noTime, Values: []Value{{Name: "Inter-arrival gap", Unit: "ms", of: each(gap)}}},
		{Key: "turn_gaps", Name: "Turn gaps", Measure: LogRatio, Bound: 0.1, lacks: "no times between turns", Values: []Value{{Name: "Turn gap", Unit: "ms", of: each(turnGap)}}},
		{Key: "peak_minute", Name: "Peak minute", Measure: Relative, Bound: 0.1, lacks: noTime, Values: []Value{
			{Name: "Peak-minute requests", of: peak(one)},
			{Name: "Peak-minute input", Unit: tokens, of: peak(isl)}, {Name: "Peak-minute output", Unit: tokens, of: peak(osl)},
		}},
		{Key: "rate", Name: "Request rate", Measure: Relative, Bound: 0.03, lacks: noTime, Values: []Value{{Name: "Request rate", Unit: "/s", of: gaps, per: seconds}}},
	}
}

// each appends a value of each request.
func each(value int) column {
	return func(all []float64, p piece) []float64 {
		for _, r := range p {
			all = append(all, r.value[value])
		}
		return all
	}
}

// peak appends the most of a value within 60 s, if there is more than one time.
func peak(value int) column {
	return func(all []float64, p piece) []float64 {
		if p[0].at == p[len(p)-1].at {
			return all
		}
		peak, sum, begin := 0.0, 0.0, 0
		for _, r := range p {
			for sum += r.value[value]; r.at-p[begin].at >= 60_000; begin++ {
				sum -= p[begin].value[value]
			}
			peak = max(peak, sum)
		}
		return append(all, peak)
	}
}

// gaps appends the number of times between arrivals.
func gaps(all []float64, p piece) []float64 { return append(all, float64(len(p)-1)) }

// seconds appends the time from the first arrival to the last.
func seconds(all []float64, p piece) []float64 { return append(all, (p[len(p)-1].at-p[0].at)/1000) }

// in appends numbers of pieces.
func (c column) in(pieces []piece, all []float64) []float64 {
	for _, p := range pieces {
		all = c(all, p)
	}
	return all
}

// in returns what is known of a value in pieces, in a slice that it overwrites.
func (v *Value) in(pieces []piece, all []float64) []float64 {
	all = v.of.in(pieces, all[:0])
	if v.per != nil {
		mean := stat.Mean(all, nil)
		all = append(all[:0], mean/stat.Mean(v.per.in(pieces, all[:0]), nil))
	}
	return slices.DeleteFunc(all, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}

// compare sets the values of an aspect and returns their largest gap.
func (a *Aspect) compare(source, drawn []piece, rateScale float64) (largest float64) {
	of, by := make([]float64, 0, len(source[0])), make([]float64, 0, len(drawn[0]))
	for i := range a.Values {
		v := &a.Values[i]
		of, by = v.in(source, of), v.in(drawn, by)
		if a.Measure == Relative {
			floats.Scale(rateScale, of)
		}
		x, y := stats.Of(of), stats.Of(by)
		v.Source, v.Drawn, v.Gap = a.Measure.shown(x), a.Measure.shown(y), trace.Opt[float64]{}
		if v.Source.Set && v.Drawn.Set {
			v.Gap = trace.Some(a.Measure.gap(of, by, x, y))
			largest = max(largest, v.Gap.Value)
		}
	}
	return largest
}

// shown returns what a report shows of a value: a median, or the mean over pieces.
func (m Measure) shown(s stats.Sample) (none trace.Opt[float64]) {
	switch {
	case s.Count == 0 || m == LogRatio && s.Max == 0:
		return none
	case m == KS || m == LogRatio:
		return trace.Some(s.Quantile(0.5))
	}
	return trace.Some(s.Mean)
}

// gap returns the gap between a value of two traces. Ratios are those of values with 1 %
// of the source's mean added: that a tick is a few milliseconds late is no difference.
func (m Measure) gap(source, drawn []float64, x, y stats.Sample) float64 {
	switch difference := math.Abs(y.Mean - x.Mean); {
	case m == KS:
		return stats.KS(x, y)
	case m == LogRatio:
		more := 0.01 * stat.Mean(source, nil)
		for _, values := range [][]float64{source, drawn} {
			for i := range values {
				values[i] = math.Log(values[i] + more)
			}
		}
		return stats.Wasserstein(stats.Of(source), stats.Of(drawn))
	case m == Relative && difference > 0:
		return difference / x.Mean
	default:
		return difference
	}
}
