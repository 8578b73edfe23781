// Package slo parses service level objectives of a run and judges whether it meets them.
//
// [ParseConditions] parses conditions on metrics, such as p99_ttft<2s. A [Gate] is a
// condition that a run must or must not meet:
//
//	conditions, err := slo.ParseConditions("p99_ttft<2s,failed<1%")
//	...
//	fmt.Println(slo.Gate{Condition: conditions[0]}.Judge(result))
//
// What was not measured does not pass. [ParseObjectives] parses limits of each request, for
// goodput. All values are those of package measure.
package slo

import (
	"fmt"
	"math"
	"strconv"

	"moontide/analyze/measure"
	"moontide/trace"
	"moontide/trace/stats"
)

// Gate is a condition that decides whether a run passes. Values that were not measured, or
// from too few requests, do not pass.
type Gate struct {
	Condition
	// Forbidden means that the condition must not hold.
	Forbidden bool
	// Force also accepts a percentile with fewer than 5 values beyond it, and a run
	// that is incomplete.
	Force bool
}

// String returns the gate in words, such as "p99_ttft_ms<2000 must hold".
func (g Gate) String() string {
	if g.Forbidden {
		return g.Condition.String() + " must not hold"
	}
	return g.Condition.String() + " must hold"
}

// Judgement is the result of a gate.
type Judgement struct {
	Gate   Gate
	Passed bool
	// Margin is the distance of Value from the limit, negative if it fails, in the metric's
	// unit or, for a relative change, as a share. Both are absent if unknown.
	Value, Margin trace.Opt[float64]
	// Remark explains the value, or why the gate failed in spite of its margin.
	Remark string
}

// String returns the gate with its value and margin.
func (j Judgement) String() string {
	text := j.Gate.String()
	if j.Value.Set {
		text += ": " + j.Gate.amount(j.Value.Value, j.Gate.Kind != OfValue)
		if j.Margin.Set {
			text += ", margin " + j.Gate.amount(j.Margin.Value, false)
		}
	}
	if j.Remark != "" {
		text += ": " + j.Remark
	}
	return text
}

// Judge applies the gate to a run.
func (g Gate) Judge(r *measure.Result) Judgement {
	value := g.Metric.Value(r)
	switch {
	case g.Kind != OfValue:
		return g.Fail("a change needs two runs to compare")
	case !value.Set:
		return g.Fail("not measured in this run")
	}
	return g.JudgeValue(value.Value, value.Value, g.Metric.Count(r), "")
}

// Fail fails the gate for a reason.
func (g Gate) Fail(reason string) Judgement { return Judgement{Gate: g, Remark: reason} }

// JudgeValue applies the gate to a value. It compares countsAs with the limit, 0 for an
// insignificant change. count is that of [measure.Metric.Count].
func (g Gate) JudgeValue(value, countsAs float64, count int, remark string) Judgement {
	j := Judgement{Gate: g, Passed: g.passes(countsAs), Value: trace.Some(value), Remark: remark}
	if margin := g.margin(countsAs); !math.IsInf(margin, 0) && !math.IsNaN(margin) {
		j.Margin = trace.Some(margin)
	}
	if reason := g.tooFew(count); reason != "" {
		j.Passed, j.Remark = false, reason
	}
	return j
}

// minBeyond is the minimum number of values beyond a percentile. With fewer, it is little
// more than the largest or smallest value.
const minBeyond = 5

// tooFew returns why count values are too few for the gate's percentile, or "".
func (g Gate) tooFew(count int) string {
	s := g.Metric.Statistic
	if g.Force || g.Metric.Latency == measure.NoLatency && !g.Metric.Session || !s.IsQuantile {
		return ""
	}
	least := needed(s)
	if least == 0 {
		return fmt.Sprintf("no value lies beyond %s: use min or max", s.Key)
	}
	if count >= least {
		return ""
	}
	what := "requests"
	if g.Metric.Latency == measure.ITL || g.Metric.Latency == measure.ITLPerToken {
		what = "gaps between tokens"
	}
	if g.Metric.Session {
		what = "sessions"
	}
	return fmt.Sprintf("too few %s for %s: %d, needs %d (%d beyond it)", what, s.Key, count, least, minBeyond)
}

// needed returns the number of values that a percentile needs, 0 for the extremes.
func needed(s measure.Statistic) int {
	tail := min(s.P, 1-s.P)
	if tail <= 0 {
		return 0
	}
	return int(math.Ceil(minBeyond / tail * (1 - 1e-9))) // 5 of 50 values lie beyond p90
}

// RequestsNeeded returns the number of requests that the gate's percentile needs, 0 if it
// has none.
func (g Gate) RequestsNeeded() int {
	if g.Metric.Latency == measure.NoLatency || !g.Metric.Statistic.IsQuantile {
		return 0
	}
	return needed(g.Metric.Statistic)
}

// TooFewRequests returns why the gate cannot pass in a run of n requests, or "".
func (g Gate) TooFewRequests(n int) string {
	if g.Metric.Latency == measure.ITL || g.Metric.Latency == measure.ITLPerToken || g.Metric.Session {
		return "" // not one value per request
	}
	return g.tooFew(n)
}

// margin returns the distance of a value from the limit, negative if it fails.
func (g Gate) margin(value float64) float64 {
	if below := g.Op == Less || g.Op == AtMost; below != g.Forbidden {
		return g.Limit - value
	}
	return value - g.Limit
}

func (g Gate) passes(value float64) bool {
	margin, inclusive := g.margin(value), g.Op == AtMost || g.Op == AtLeast
	return margin > 0 || margin == 0 && inclusive != g.Forbidden
}

// amount formats a value or a margin with its unit.
func (g Gate) amount(x float64, signed bool) string {
	unit := string(g.Metric.Unit)
	switch {
	case g.Kind == OfChange && g.Metric.Unit == measure.Share:
		x, unit = 100*x, "percentage points"
	case g.Kind == OfRelativeChange || g.Metric.Unit == measure.Share:
		x, unit = 100*x, "%"
	}
	text := strconv.FormatFloat(x, 'f', 2, 64)
	switch {
	case g.Metric.Unit == measure.Count && g.Kind != OfRelativeChange && x == math.Trunc(x) && !math.IsInf(x, 0):
		text = stats.Plain(x)
	case x != 0 && math.Abs(x) < 0.1:
		text = stats.Plain(stats.Significant(x, 3))
	}
	if signed && x >= 0 {
		text = "+" + text
	}
	if unit != "" {
		text += " " + unit
	}
	return text
}

// Failed returns the judgements that did not pass.
func Failed(all []Judgement) (failed []Judgement) {
	for _, j := range all {
		if !j.Passed {
			failed = append(failed, j)
		}
	}
	return failed
}
