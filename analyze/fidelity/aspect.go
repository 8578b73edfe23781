package fidelity

import (
	"math"

	"moontide/trace/stats"
)

// Measure is how a gap is measured.
type Measure string

// The measures.
const (
	KS         Measure = "ks"         // distance between two distributions (see [stats.KS]), whose values are medians
	LogRatio   Measure = "log_ratio"  // the same as the mean of |ln| of the ratio of their quantiles
	Difference Measure = "difference" // of two shares
	Relative   Measure = "relative"   // to the source's value
)

// Aspect is a property of a trace that is compared.
type Aspect struct {
	// Key names the aspect in files.
	Key string
	// Name is its name in reports, Definition what its values are.
	Name, Definition string
	Measure          Measure
	// Bound is the largest gap that always passes.
	Bound float64

	values []value
	lacks  string // what a trace without values lacks
	few    int    // values of the source that are too few to compare
}

// value is one of the values of an aspect.
type value struct {
	name, unit string
	column     int                           // of a distribution
	of         func(pieces []*piece) float64 // of other measures
}

// fewTurnGaps are too few to compare, for they may be of one session that another trace of
// the same kind may not have.
const fewTurnGaps = 14

// Aspects returns all aspects in the order of reports.
func Aspects() []Aspect {
	curve := Aspect{
		Key: "lru_curve", Name: "LRU curve", Measure: Difference, Bound: 0.03, lacks: "no block ids",
		Definition: "block hit rates of LRU caches of 1, 3, 10, 30 and 100 % of the source's unique blocks",
	}
	for i, name := range [...]string{"1", "3", "10", "30", "100"} {
		curve.values = append(curve.values, value{name: "LRU hit rate at " + name + " %", unit: "%", of: func(pieces []*piece) float64 {
			return sum(pooled(pieces, lru+i)) / sum(pooled(pieces, blocks))
		}})
	}
	return []Aspect{
		{
			Key: "lengths", Name: "Lengths", Measure: KS, Bound: 0.03,
			Definition: "input and output lengths",
			values:     []value{{name: "ISL", unit: "tokens", column: isl}, {name: "OSL", unit: "tokens", column: osl}},
		}, {
			Key: "context", Name: "Shared context", Measure: KS, Bound: 0.03, lacks: "no block ids",
			Definition: "leading tokens of prompts, in whole blocks, that another request has, too",
			values:     []value{{name: "Shared context", unit: "tokens", column: context}},
		},
		curve,
		{
			Key: "gaps", Name: "Gaps", Measure: LogRatio, Bound: 0.1, lacks: "all requests arrive at once",
			Definition: "times from one arrival to the next, plus 1 % of their mean in the source",
			values:     []value{{name: "Inter-arrival gap", unit: "ms", column: gap}},
		}, {
			Key: "turn_gaps", Name: "Turn gaps", Measure: LogRatio, Bound: 0.1, lacks: "no session has a second turn", few: fewTurnGaps,
			Definition: "times from the arrival of a request to that of the next one of its session, plus 1 % of their mean in the source",
			values:     []value{{name: "Turn gap", unit: "ms", column: turnGap}},
		}, {
			Key: "peak_minute", Name: "Peak minute", Measure: Relative, Bound: 0.1, lacks: "all requests arrive at once",
			Definition: "most requests, input and output tokens that arrive within 60 s",
			values: []value{
				{name: "Peak-minute requests", of: peakOf(requests)},
				{name: "Peak-minute input", unit: "tokens", of: peakOf(isl)},
				{name: "Peak-minute output", unit: "tokens", of: peakOf(osl)},
			},
		}, {
			Key: "rate", Name: "Request rate", Measure: Relative, Bound: 0.03, lacks: "all requests arrive at once",
			Definition: "requests per second from the first arrival to the last",
			values:     []value{{name: "Request rate", unit: "/s", of: rate}},
		},
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

// gap returns the largest gap of the values between two lists of pieces, NaN without any.
func (a *Aspect) gap(source, drawn []*piece) float64 {
	largest := math.NaN()
	for i := range a.values {
		if g := a.gapOf(&a.values[i], source, drawn); !math.IsNaN(g) && !(g <= largest) {
			largest = g
		}
	}
	return largest
}

func (a *Aspect) gapOf(v *value, source, drawn []*piece) float64 {
	switch a.Measure {
	case KS:
		return stats.KS(stats.Of(pooled(source, v.column)), stats.Of(pooled(drawn, v.column)))
	case LogRatio:
		x, y := pooled(source, v.column), pooled(drawn, v.column)
		tolerance := toleratedShare * sum(x) / float64(len(x))
		return stats.Wasserstein(logarithms(x, tolerance), logarithms(y, tolerance))
	}
	x, y := v.of(source), v.of(drawn)
	switch {
	case x == y:
		return 0
	case a.Measure == Difference:
		return math.Abs(y - x)
	case x == 0:
		return 1
	}
	return math.Abs(y-x) / x
}

// toleratedShare of the source's mean gap is added to all gaps: that a tick is a few
// milliseconds late is no difference.
const toleratedShare = 0.01

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
