package fidelity

import (
	"math"

	"moontide/trace/stats"
)

// Measure is how a gap is measured.
type Measure string

// The measures.
const (
	KS         Measure = "ks"         // distance between two distributions (see [stats.KS]), shown with their medians
	LogRatio   Measure = "log_ratio"  // mean of |ln| of the ratio of their quantiles
	Difference Measure = "difference" // of two shares
	Relative   Measure = "relative"   // to the source's value
)

// Aspect is a property of a trace that is compared.
type Aspect struct {
	Key, Name string // in files and in reports
	Measure   Measure
	Bound     float64 // the largest gap that always passes

	lacks  string // what a trace without values lacks
	values []value
}

// value is one of the values of an aspect.
type value struct {
	name, unit string
	column     int                           // of a distribution
	of         func(pieces []*piece) float64 // of other measures
}

// Aspects returns all aspects in the order of reports. Gaps are compared with 1 % of their
// mean in the source added to each: that a tick is a few milliseconds late is no difference.
func Aspects() []Aspect {
	curve := Aspect{Key: "lru_curve", Name: "LRU curve", Measure: Difference, Bound: 0.03, lacks: "no block ids"}
	for i, name := range [...]string{"1", "3", "10", "30", "100"} {
		curve.values = append(curve.values, value{name: "LRU hit rate at " + name + " %", unit: "%", of: func(pieces []*piece) float64 {
			return sum(pooled(pieces, lru+i)) / sum(pooled(pieces, blocks))
		}})
	}
	const noTime, tokens = "all requests arrive at once", "tokens"
	return []Aspect{
		{"lengths", "Lengths", KS, 0.03, "", []value{{"ISL", tokens, isl, nil}, {"OSL", tokens, osl, nil}}},
		{"context", "Shared context", KS, 0.03, "no block ids", []value{{"Shared context", tokens, context, nil}}},
		curve,
		{"gaps", "Gaps", LogRatio, 0.1, noTime, []value{{"Inter-arrival gap", "ms", gap, nil}}},
		{"turn_gaps", "Turn gaps", LogRatio, 0.1, "no times between turns", []value{{"Turn gap", "ms", turnGap, nil}}},
		{"peak_minute", "Peak minute", Relative, 0.1, noTime, []value{
			{"Peak-minute requests", "", 0, peakOf(requests)}, {"Peak-minute input", tokens, 0, peakOf(isl)}, {"Peak-minute output", tokens, 0, peakOf(osl)},
		}},
		{"rate", "Request rate", Relative, 0.03, noTime, []value{{"Request rate", "/s", 0, rate}}},
	}
}

// peakOf returns the most of a column within 60 s, as the mean over pieces.
func peakOf(column int) func(pieces []*piece) float64 {
	const minute = 60_000
	return func(pieces []*piece) float64 {
		peaks := 0.0
		for _, p := range pieces {
			if p.span() == 0 {
				return math.NaN()
			}
			peak, sum, begin := 0.0, 0.0, 0
			for i, at := range p.at {
				for sum += p.column[column][i]; at-p.at[begin] >= minute; begin++ {
					sum -= p.column[column][begin]
				}
				peak = max(peak, sum)
			}
			peaks += peak
		}
		return peaks / float64(len(pieces))
	}
}

// rate returns the requests per second.
func rate(pieces []*piece) float64 {
	gaps, span := 0.0, 0.0
	for _, p := range pieces {
		gaps += float64(len(p.at) - 1)
		span += p.span()
	}
	return 1000 * gaps / span
}

// span returns the ms from the first arrival to the last.
func (p *piece) span() float64 { return p.at[len(p.at)-1] - p.at[0] }

func sum(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// pooled returns the known values of a column of all pieces.
func pooled(pieces []*piece, column int) (all []float64) {
	for _, p := range pieces {
		for _, v := range p.column[column] {
			if !math.IsNaN(v) {
				all = append(all, v)
			}
		}
	}
	return all
}

// gap returns the largest gap of the values between two lists of pieces.
func (a *Aspect) gap(source, drawn []*piece) (largest float64) {
	for i := range a.values {
		if g := a.gapOf(&a.values[i], source, drawn); g > largest {
			largest = g
		}
	}
	return largest
}

func (a *Aspect) gapOf(v *value, source, drawn []*piece) float64 {
	switch x, y := pooled(source, v.column), pooled(drawn, v.column); a.Measure {
	case KS:
		return stats.KS(stats.Of(x), stats.Of(y))
	case LogRatio:
		tolerance := 0.01 * sum(x) / float64(len(x))
		return stats.Wasserstein(logarithms(x, tolerance), logarithms(y, tolerance))
	}
	gap := math.Abs(v.of(drawn) - v.of(source))
	if a.Measure == Relative && gap > 0 {
		gap /= v.of(source)
	}
	return gap
}

func logarithms(values []float64, tolerance float64) stats.Sample {
	for i, v := range values {
		values[i] = math.Log(v + tolerance)
	}
	return stats.Of(values)
}

// shown returns a value in a report, NaN for none.
func (a *Aspect) shown(v *value, pieces []*piece) float64 {
	if v.of != nil {
		return v.of(pieces)
	}
	s := stats.Of(pooled(pieces, v.column))
	if s.Count == 0 || a.Measure == LogRatio && s.Max == 0 {
		return math.NaN()
	}
	return s.Quantile(0.5)
}
