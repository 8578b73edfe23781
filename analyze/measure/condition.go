package measure

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

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
	limit, err := parseLimit(strings.TrimSpace(rest))
	if err == nil {
		err = c.set(strings.TrimSpace(text[:at]), limit)
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

// parsedLimit is a limit without its metric.
type parsedLimit struct {
	value  float64 // in ms if it is a duration
	signed bool
	unit   limitUnit
}

type limitUnit int

const (
	noUnit limitUnit = iota
	inPercent
	asDuration
)

func parseLimit(text string) (l parsedLimit, err error) {
	number := strings.TrimLeft(text, "+-")
	l.signed = number != text
	sign := 1.0
	if strings.HasPrefix(text, "-") {
		sign = -1
	}
	digits, isPercent := strings.CutSuffix(number, "%")
	digits = strings.TrimSpace(digits)
	switch plainNumber := strings.Trim(digits, "0123456789.eE") == ""; {
	case len(text)-len(number) > 1:
		err = errors.New("two signs")
	case isPercent && plainNumber:
		l.unit = inPercent
		l.value, err = strconv.ParseFloat(digits+"e-2", 64) // rounded once
	case !isPercent && plainNumber:
		l.value, err = strconv.ParseFloat(digits, 64)
	default:
		var d time.Duration
		l.unit = asDuration
		d, err = time.ParseDuration(strings.ReplaceAll(number, " ", ""))
		l.value = trace.MS(d)
	}
	if err != nil {
		return l, fmt.Errorf("%q is not a number, a percentage or a duration", text)
	}
	l.value *= sign
	return l, nil
}

// set sets the metric and the limit, which must fit each other.
func (c *Condition) set(key string, l parsedLimit) (err error) {
	if l.unit == inPercent && (key == "failed" || key == "abandoned") {
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
	c.Limit = l.value
	if l.signed {
		c.Kind = OfChange
	}
	switch {
	case l.unit == inPercent && l.signed:
		if c.Kind = OfRelativeChange; l.value < -1 {
			return errors.New("no metric can fall by more than 100 %")
		}
	case l.unit == inPercent && !isShare:
		return fmt.Errorf("a percentage of %s is a change and needs a sign: want %[1]s%s+%s or %[1]s%[2]s-%[3]s", key, c.Op, plainPercent(l.value))
	case l.unit == asDuration && !isTime:
		return fmt.Errorf("%s is not a time", key)
	case l.unit == asDuration && c.Metric.Unit == Seconds:
		c.Limit /= 1000
	case l.unit == noUnit && !unitInKey:
		return fmt.Errorf("the limit has no unit: want, for example, %s%s2s, or %s in milliseconds", key, c.Op, c.Metric.Key)
	case l.unit == noUnit && isShare && !l.signed:
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
	digits := stats.Plain(share)
	_, fraction, _ := strings.Cut(digits, ".")
	hundredfold, _ := new(big.Rat).SetString(digits + "e2")
	return hundredfold.FloatString(max(len(fraction)-2, 0)) + "%"
}
