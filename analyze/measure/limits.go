package measure

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/stats"
)

// Condition is a limit on a metric of a run, or on its change between two runs.
type Condition struct {
	Metric Metric
	Op     Operator
	Kind   LimitKind
	// Limit is in the metric's unit; a share is from 0 to 1, and a relative change
	// of 0.05 is +5 %.
	Limit float64
}

// Operator compares a value with a limit.
type Operator string

const (
	Less    Operator = "<"
	AtMost  Operator = "<="
	More    Operator = ">"
	AtLeast Operator = ">="
)

// LimitKind is what a condition limits.
type LimitKind int

const (
	OfValue          LimitKind = iota // the value in one run
	OfChange                          // B - A
	OfRelativeChange                  // B / A - 1
)

// ParseCondition parses the key of a metric, one of < <= > >=, and a limit:
//
//	p99_ttft_ms<2000    p99_ttft<2s    p99_ttft<1m30s    output_throughput>=1000
//	failed<1%           good_share>99%
//	p99_ttft_ms>+5%     p99_ttft>+20ms output_throughput<-200
//
// A limit with a sign is a change from one run to another, with % relative to the
// first. A share takes a percentage; failed and abandoned with a percentage are shares. A
// time takes a duration with a unit; the unit may be omitted if the key contains it.
func ParseCondition(text string) (Condition, error) {
	at := strings.IndexAny(text, "<>")
	if at < 0 {
		return Condition{}, fmt.Errorf("condition %q has no < or >: want, for example, p99_ttft<2s", text)
	}
	c, rest := Condition{Op: Operator(text[at : at+1])}, text[at+1:]
	if after, ok := strings.CutPrefix(rest, "="); ok {
		c.Op, rest = c.Op+"=", after
	}
	limit := strings.TrimSpace(rest)
	value, unit, err := parseLimit(limit)
	if err == nil {
		err = c.set(strings.TrimSpace(text[:at]), value, unit, strings.HasPrefix(limit, "+") || strings.HasPrefix(limit, "-"))
	}
	if err != nil {
		return Condition{}, fmt.Errorf("condition %q: %w", text, err)
	}
	return c, nil
}

// ParseConditions parses comma-separated conditions.
func ParseConditions(text string) (all []Condition, err error) {
	for word := range strings.SplitSeq(text, ",") {
		c, err := ParseCondition(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// The units of limits.
const (
	noUnit    = ""
	inPercent = "%"
	inTime    = "ms"
)

// parseLimit returns a plain number, a percentage as a share, or a duration in milliseconds.
func parseLimit(text string) (value float64, unit string, err error) {
	number, percent := strings.CutSuffix(text, "%")
	switch plain := strings.Trim(number, "+-0123456789.eE ") == ""; {
	case plain && percent:
		value, err = strconv.ParseFloat(strings.TrimSpace(number)+"e-2", 64) // rounded once
		unit = inPercent
	case plain:
		value, err = strconv.ParseFloat(number, 64)
	default:
		var d time.Duration
		d, err = time.ParseDuration(strings.ReplaceAll(text, " ", ""))
		value, unit = trace.MS(d), inTime
	}
	if err != nil {
		err = fmt.Errorf("%q is not a number, a percentage or a duration", text)
	}
	return value, unit, err
}

// set sets the metric and the limit, which must fit each other.
func (c *Condition) set(key string, limit float64, unit string, signed bool) (err error) {
	if unit == inPercent && (key == "failed" || key == "abandoned") {
		key += "_share"
	}
	c.Metric, err = ParseMetric(key)
	unitInKey := err == nil
	if err != nil {
		timed, other := ParseMetric(key + "_ms")
		if other != nil {
			return err
		}
		c.Metric = timed
	}
	isTime, isShare := c.Metric.Unit == Milliseconds || c.Metric.Unit == Seconds, c.Metric.Unit == Share
	c.Limit = limit
	if signed {
		c.Kind = OfChange
	}
	switch {
	case unit == inPercent && signed:
		if c.Kind = OfRelativeChange; limit < -1 {
			return errors.New("no metric can fall by more than 100 %")
		}
	case unit == inPercent && !isShare:
		return fmt.Errorf("a percentage of %s is a change and needs a sign: want %[1]s%s+%s or %[1]s%[2]s-%[3]s", key, c.Op, plainPercent(limit))
	case unit == inTime && !isTime:
		return fmt.Errorf("%s is not a time", key)
	case unit == inTime && c.Metric.Unit == Seconds:
		c.Limit /= 1000
	case unit == noUnit && !unitInKey:
		return fmt.Errorf("the limit has no unit: want, for example, %s%s2s, or %s in milliseconds", key, c.Op, c.Metric.Key)
	case unit == noUnit && isShare && !signed:
		return fmt.Errorf("a share needs a percentage: want, for example, %s%s1%%", key, c.Op)
	}
	if isShare && c.Kind != OfRelativeChange && math.Abs(c.Limit) > 1 {
		return errors.New("a share cannot exceed 100 %")
	}
	return nil
}

// String returns the condition in the format of [ParseCondition].
func (c Condition) String() string {
	limit := stats.Plain(c.Limit + 0) // not -0
	if c.Kind == OfRelativeChange || c.Kind == OfValue && c.Metric.Unit == Share {
		limit = plainPercent(c.Limit)
	}
	if c.Kind != OfValue && c.Limit >= 0 {
		limit = "+" + limit
	}
	return c.Metric.Key + string(c.Op) + limit
}

// plainPercent formats a share as a percentage with all of its digits.
func plainPercent(share float64) string {
	hundredfold, _ := new(big.Rat).SetString(stats.Plain(share) + "e2")
	digits, _ := hundredfold.FloatPrec()
	return hundredfold.FloatString(digits) + "%"
}

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
func (g Gate) Judge(r *Result) Judgement {
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
// insignificant change. count is that of [Metric.Count].
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
	if g.Force || g.Metric.Latency == NoLatency && !g.Metric.Session || !s.IsQuantile {
		return ""
	}
	needed := s.needed()
	if needed == 0 {
		return fmt.Sprintf("no value lies beyond %s: use min or max", s.Key)
	}
	if count >= needed {
		return ""
	}
	what := "requests"
	if g.Metric.Latency == ITL || g.Metric.Latency == ITLPerToken {
		what = "gaps between tokens"
	}
	if g.Metric.Session {
		what = "sessions"
	}
	return fmt.Sprintf("too few %s for %s: %d, needs %d (%d beyond it)", what, s.Key, count, needed, minBeyond)
}

// needed returns the number of values that a percentile needs, 0 for the extremes.
func (s Statistic) needed() int {
	tail := min(s.P, 1-s.P)
	if tail <= 0 {
		return 0
	}
	return int(math.Ceil(minBeyond / tail * (1 - 1e-9))) // 5 of 50 values lie beyond p90
}

// RequestsNeeded returns the number of requests that the gate's percentile needs, 0 if it
// has none.
func (g Gate) RequestsNeeded() int {
	if g.Metric.Latency == NoLatency || !g.Metric.Statistic.IsQuantile {
		return 0
	}
	return g.Metric.Statistic.needed()
}

// TooFewRequests returns why the gate cannot pass in a run of n requests, or "".
func (g Gate) TooFewRequests(n int) string {
	if g.Metric.Latency == ITL || g.Metric.Latency == ITLPerToken || g.Metric.Session {
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
	case g.Kind == OfChange && g.Metric.Unit == Share:
		x, unit = 100*x, "percentage points"
	case g.Kind == OfRelativeChange || g.Metric.Unit == Share:
		x, unit = 100*x, "%"
	}
	text := strconv.FormatFloat(x, 'f', 2, 64)
	switch {
	case g.Metric.Unit == Count && g.Kind != OfRelativeChange && x == math.Trunc(x) && !math.IsInf(x, 0):
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

// Objective is an upper limit for a latency of each request.
type Objective struct {
	Latency Latency
	LimitMS float64
}

// ParseObjectives parses objectives such as "ttft:2000,tpot:25", in milliseconds.
func ParseObjectives(text string) ([]Objective, error) {
	var all []Objective
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, limit, found := strings.Cut(word, ":")
		if !found {
			return nil, fmt.Errorf("%q is no objective: want a metric and its limit in ms, such as ttft:2000", word)
		}
		latency, err := ParseLatency(name)
		if err != nil {
			return nil, err
		}
		ms, err := strconv.ParseFloat(limit, 64)
		if err != nil || !(ms >= 0 && ms <= 1e12) {
			return nil, fmt.Errorf("the limit of %s is no number of milliseconds: %q", latency, limit)
		}
		for _, o := range all {
			if o.Latency == latency {
				return nil, fmt.Errorf("%s has two limits", latency)
			}
		}
		all = append(all, Objective{latency, ms})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%q names no objective: one is ttft:2000, a metric and its limit in ms", text)
	}
	return all, nil
}

// String returns the objective in the format of [ParseObjectives].
func (o Objective) String() string {
	return o.Latency.String() + ":" + stats.Plain(o.LimitMS)
}

// MetBy reports whether a request meets the objective. Undefined latencies, such as TPOT
// with a single token, meet it, but an answer without a visible token misses one of TTFVT.
func (o Objective) MetBy(q *Request) bool {
	value := q.Latency(o.Latency)
	return value.Set && value.Value <= o.LimitMS || !value.Set && o.Latency != TTFVT
}

// Goodput counts the requests that met their objectives. Failed ones meet none.
type Goodput struct {
	Requests   int // ended in the measured part, including failed ones
	Good       int // met every objective
	Rate       trace.Opt[float64]
	Objectives []MetObjective
}

// MetObjective is an objective and the number of requests that met it.
type MetObjective struct {
	Objective
	Met int
}

// Share returns n as a share of Requests, from 0 to 1.
func (g *Goodput) Share(n int) trace.Opt[float64] {
	return trace.Ratio(n, g.Requests)
}

func newGoodput(objectives []Objective) *Goodput {
	if len(objectives) == 0 {
		return nil
	}
	g := &Goodput{}
	for _, o := range objectives {
		g.Objectives = append(g.Objectives, MetObjective{Objective: o})
	}
	return g
}

// add counts a request that has ended.
func (g *Goodput) add(q *Request) {
	g.Requests++
	if q.Class != replay.OK {
		return
	}
	for i := range g.Objectives {
		if o := &g.Objectives[i]; o.MetBy(q) {
			o.Met++
		}
	}
	if q.Good {
		g.Good++
	}
}
