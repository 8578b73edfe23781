package slo

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"moontide/analyze/measure"
	"moontide/trace"
	"moontide/trace/stats"
)

// Condition is a limit on a metric of a run, or on its change between two runs.
type Condition struct {
	Metric measure.Metric
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
	c.Metric, err = measure.ParseMetric(key)
	unitInKey := err == nil
	if err != nil {
		timed, other := measure.ParseMetric(key + "_ms")
		if other != nil {
			return err
		}
		c.Metric = timed
	}
	isTime, isShare := c.Metric.Unit == measure.Milliseconds || c.Metric.Unit == measure.Seconds, c.Metric.Unit == measure.Share
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
	case unit == inTime && c.Metric.Unit == measure.Seconds:
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
	if c.Kind == OfRelativeChange || c.Kind == OfValue && c.Metric.Unit == measure.Share {
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

// ParseObjectives parses objectives such as "ttft:2000,tpot:25", in milliseconds.
func ParseObjectives(text string) ([]measure.Objective, error) {
	var all []measure.Objective
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, limit, found := strings.Cut(word, ":")
		if !found {
			return nil, fmt.Errorf("%q is no objective: want a metric and its limit in ms, such as ttft:2000", word)
		}
		latency, err := measure.ParseLatency(name)
		if err != nil {
			return nil, err
		}
		ms, err := strconv.ParseFloat(limit, 64)
		if err != nil || !(ms >= 0 && ms <= 1e12) {
			return nil, fmt.Errorf("the limit of %s is no number of milliseconds: %q", latency, limit)
		}
		if slices.ContainsFunc(all, func(o measure.Objective) bool { return o.Latency == latency }) {
			return nil, fmt.Errorf("%s has two limits", latency)
		}
		all = append(all, measure.Objective{Latency: latency, LimitMS: ms})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%q names no objective: one is ttft:2000, a metric and its limit in ms", text)
	}
	return all, nil
}
