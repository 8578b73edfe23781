package diff

import (
	"math"

	"moontide/analyze/measure"
)

// Judge applies a gate to side B, or to its change from side A. A change that is not
// significant counts as 0, and one without an interval as measured.
func Judge(g measure.Gate, d Difference) measure.Judgement {
	switch {
	case !d.B.Set:
		return g.Unmet("not measured in B")
	case g.Kind == measure.OfValue:
		return g.JudgeValue(d.B.Value, d.B.Value, d.CountB, "")
	case !d.A.Set:
		return g.Unmet("not measured in A")
	}
	value, remark := d.Difference.Value, ""
	if g.Kind == measure.OfRelativeChange && value != 0 {
		value /= math.Abs(d.A.Value) // infinite if A is 0
	}
	countsAs := value
	switch {
	case d.Interval.Set && !d.Significant():
		countsAs, remark = 0, "not significant, counts as no change"
	case !d.Interval.Set && value != 0:
		remark = "no confidence interval"
	}
	return g.JudgeValue(value, countsAs, min(d.CountA, d.CountB), remark)
}
