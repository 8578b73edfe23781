package diff

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"moontide/analyze/run"
)

// Gate is a condition on a metric of B that fails the comparison.
type Gate struct {
	Metric run.Metric
	Text   string // as parsed
	above  bool   // fail above the limit, else below it
	kind   gateKind
	limit  float64
}

type gateKind int

const (
	level    gateKind = iota // value of B
	change                   // B - A
	relative                 // B / A - 1
)

// ParseGate parses a condition: the key of a metric, > or <, and a limit. A limit
// with a sign is a change from A to B, in percent of A with %, else in the metric's
// unit. A limit without a sign applies to the value of B.
//
//	p99_ttft_ms>+5%        p99_ttft_ms>+20
//	output_throughput<-3%  mean_itl_ms>25
func ParseGate(text string) (Gate, error) {
	at := strings.IndexAny(text, "<>")
	if at < 0 {
		return Gate{}, fmt.Errorf("condition %q has no < or >: want for example p99_ttft_ms>+5%%", text)
	}
	m, err := run.ParseMetric(strings.TrimSpace(text[:at]))
	if err != nil {
		return Gate{}, fmt.Errorf("condition %q: %w", text, err)
	}
	g := Gate{Metric: m, Text: text, above: text[at] == '>'}
	number, percent := strings.CutSuffix(strings.TrimSpace(text[at+1:]), "%")
	signed := strings.HasPrefix(number, "+") || strings.HasPrefix(number, "-")
	g.limit, err = strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err != nil || math.IsNaN(g.limit) || math.IsInf(g.limit, 0):
		return Gate{}, fmt.Errorf("condition %q: %q is not a number", text, number)
	case percent && !signed:
		return Gate{}, fmt.Errorf("condition %q: a percentage is a change and has a sign: want +%s%% or -%[2]s%%", text, number)
	case percent:
		g.kind, g.limit = relative, g.limit/100
	case signed:
		g.kind = change
	}
	return g, nil
}

// Judgement is the result of a gate.
type Judgement struct {
	Gate   Gate
	Failed bool
	Reason string
}

// Judge applies the gate to the metric's difference. A change that is not
// significant is 0, one without an interval is used as measured, and a metric
// without a value fails.
func (g Gate) Judge(d Difference) Judgement {
	switch {
	case !d.B.Set:
		return Judgement{g, true, g.Metric.Key + " was not measured in B"}
	case g.kind != level && !d.A.Set:
		return Judgement{g, true, g.Metric.Key + " was not measured in A"}
	}
	value, text := d.B.Value, fmt.Sprintf("%.4g", d.B.Value)
	switch g.kind {
	case change:
		value = d.Difference.Value
		text = fmt.Sprintf("%+.4g", value)
	case relative:
		if value = d.Difference.Value; value != 0 {
			value /= math.Abs(d.A.Value) // infinite if A is 0
		}
		text = fmt.Sprintf("%+.2f %%", 100*value)
	}
	reason := g.Metric.Key + " is " + text
	switch {
	case g.kind != level && d.Interval.Set && !d.Significant():
		reason += " (not significant)"
		value = 0
	case g.kind != level && !d.Interval.Set && value != 0:
		reason += " (no confidence interval)"
	}
	failed := value < g.limit
	if g.above {
		failed = value > g.limit
	}
	return Judgement{g, failed, reason}
}
