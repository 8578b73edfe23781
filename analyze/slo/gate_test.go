package slo_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"moontide/analyze/measure"
	"moontide/analyze/slo"
	"moontide/trace"
	"moontide/trace/stats"
)

// ttfts returns the result of a run with n TTFTs of 1 to n ms.
func ttfts(n int) *measure.Result {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i + 1)
	}
	r := &measure.Result{Completed: n, TTFT: stats.Of(values)}
	if n > 0 {
		r.RequestRate = trace.Some(4.)
	}
	return r
}

func TestGates(t *testing.T) {
	failing := ttfts(99)
	failing.Failed = 1
	for _, tc := range []struct {
		gate      string
		forbidden bool
		result    *measure.Result
		passes    bool
		text      string
	}{
		{"mean_ttft<60ms", false, ttfts(100), true, "mean_ttft_ms<60 must hold: 50.50 ms, margin 9.50 ms"},
		{"mean_ttft<60ms", true, ttfts(100), false, "mean_ttft_ms<60 must not hold: 50.50 ms, margin -9.50 ms"},
		{"mean_ttft<50.5ms", false, ttfts(100), false, "margin 0.00 ms"},
		{"mean_ttft<=50.5ms", false, ttfts(100), true, "margin 0.00 ms"},
		{"mean_ttft>50.5ms", true, ttfts(100), true, "margin 0.00 ms"},
		{"mean_ttft>=50.5ms", true, ttfts(100), false, "margin 0.00 ms"},
		{"request_throughput>3.5", false, ttfts(100), true, "4.00 req/s, margin 0.50 req/s"},
		{"completed>=100", false, ttfts(100), true, "completed>=100 must hold: 100, margin 0"},
		{"failed<=1%", false, failing, true, "failed_share<=1% must hold: 1.00 %, margin 0.00 %"}, // a share of exactly 1 %
		{"failed<1%", false, failing, false, "margin 0.00 %"},

		// A metric that was not measured fails every gate.
		{"mean_ttft<60ms", false, ttfts(0), false, "not measured"},
		{"mean_itl<60ms", true, ttfts(100), false, "not measured"},
		{"goodput>1", false, ttfts(100), false, "not measured"},
		{"failed<1%", false, ttfts(0), false, "not measured"},
		{"mean_ttft>+5%", true, ttfts(100), false, "needs two runs"},
	} {
		g := slo.Gate{Condition: mustParse(t, tc.gate), Forbidden: tc.forbidden}
		if j := g.Judge(tc.result); j.Passed != tc.passes || !strings.Contains(j.String(), tc.text) {
			t.Errorf("%s: passed %v, %s; want %s", tc.gate, j.Passed, j, tc.text)
		}
	}
}

// At least 5 values must lie beyond a percentile, on the side that is further from
// the median.
func TestGatesOfTooFewValues(t *testing.T) {
	for statistic, needed := range map[string]int{"p99": 500, "p90": 50, "p50": 10, "median": 10, "p1": 500, "p5": 100, "p99.9": 5000, "p75": 20, "p97": 167} {
		for n, passes := range map[int]bool{needed: true, needed - 1: false} {
			g := slo.Gate{Condition: mustParse(t, statistic+"_ttft<1h")}
			j := g.Judge(ttfts(n))
			if j.Passed != passes || !passes && !strings.Contains(j.String(), "too few requests for "+statistic) {
				t.Errorf("%s of %d values: passed %v, %s", statistic, n, j.Passed, j)
			}
			if !j.Value.Set || !j.Margin.Set {
				t.Errorf("%s of %d values: no value and margin", statistic, n)
			}
			g.Forbidden = true
			if g.Op = slo.More; g.Judge(ttfts(n)).Passed != passes {
				t.Errorf("%s of %d values, forbidden: passed %v", statistic, n, !passes)
			}
			if g.Force = true; !g.Judge(ttfts(n)).Passed {
				t.Errorf("%s of %d values does not pass with force", statistic, n)
			}
		}
	}
	for _, statistic := range []string{"mean", "min", "max", "std"} {
		if j := (slo.Gate{Condition: mustParse(t, statistic+"_ttft<1h")}).Judge(ttfts(1)); !j.Passed {
			t.Errorf("one value: %s", j)
		}
	}
	for _, statistic := range []string{"p0", "p100"} {
		if j := (slo.Gate{Condition: mustParse(t, statistic+"_ttft<1h")}).Judge(ttfts(10000)); j.Passed || !strings.Contains(j.String(), "use min or max") {
			t.Errorf("%s: %s", statistic, j)
		}
	}
	r := ttfts(1000)
	r.ITL = stats.Of([]float64{1, 2, 3})
	if j := (slo.Gate{Condition: mustParse(t, "p99_itl<1h")}).Judge(r); j.Passed || !strings.Contains(j.String(), "too few gaps between tokens for p99: 3, needs 500") {
		t.Errorf("%s", j)
	}
}

// Tightening a limit never turns fail into pass, a gate and its opposite never both
// pass, and the sign of the margin agrees with the result.
func TestTighteningAGateNeverHelps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50_000 {
		loose := slo.Gate{Condition: drawnCondition(r), Forbidden: r.IntN(2) == 0}
		tight := loose
		by := math.Abs(loose.Limit) * r.Float64() * math.Exp(-20*r.Float64())
		if below := loose.Op == slo.Less || loose.Op == slo.AtMost; below != loose.Forbidden {
			tight.Limit -= by
		} else {
			tight.Limit += by
		}
		value := loose.Limit
		switch r.IntN(4) {
		case 0:
			value *= 1 + 0.1*r.NormFloat64()
		case 1:
			value = r.NormFloat64()
		case 2:
			value = tight.Limit
		}
		count := int(math.Exp(10 * r.Float64()))
		a, b := loose.JudgeValue(value, value, count, ""), tight.JudgeValue(value, value, count, "")
		if b.Passed && !a.Passed {
			t.Fatalf("%s fails and %s passes", a, b)
		}
		if a.Passed && a.Margin.Value < 0 || b.Margin.Value > a.Margin.Value {
			t.Fatalf("%s passed %v, and %s", a, a.Passed, b)
		}
		opposite := loose
		opposite.Forbidden = !loose.Forbidden
		if o := opposite.JudgeValue(value, value, count, ""); o.Passed && a.Passed {
			t.Fatalf("%s and %s pass", a, o)
		}
		for _, wild := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			if j := loose.JudgeValue(wild, wild, count, ""); j.Passed && math.IsNaN(wild) || j.Margin.Set {
				t.Fatalf("%v: %s", wild, j)
			}
		}
	}
}
