package diff_test

import (
	"strings"
	"testing"

	"moontide/analyze/diff"
	"moontide/trace"
)

func TestGate(t *testing.T) {
	some := func(x float64) trace.Opt[float64] { return trace.Some(x) }
	surely := func(a, b, margin float64) diff.Difference {
		return diff.Difference{A: some(a), B: some(b), Difference: some(b - a), Interval: trace.Some(diff.Interval{Low: b - a - margin, High: b - a + margin})}
	}
	bare := diff.Difference{A: some(100), B: some(110), Difference: some(10)}
	for _, tc := range []struct {
		gate   string
		d      diff.Difference
		failed bool
		reason string
	}{
		{"p99_ttft_ms>+5%", surely(100, 106, 1), true, "p99_ttft_ms is +6.00 %"},
		{"p99_ttft_ms>+5%", surely(100, 104, 1), false, "+4.00 %"},
		{"p99_ttft_ms>+5%", surely(100, 106, 7), false, "+6.00 % (not significant)"},
		{"p99_ttft_ms>+5%", bare, true, "+10.00 % (no confidence interval)"},
		{"p99_ttft_ms > +20", surely(100, 121, 1), true, "+21"},
		{"p99_ttft_ms>+20", surely(100, 119, 1), false, "+19"},
		{"p99_ttft_ms>20", surely(30, 25, 1), true, "is 25"},
		{"p99_ttft_ms>20", surely(30, 15, 100), false, "is 15"},
		{"output_throughput<-3%", surely(100, 96, 1), true, "-4.00 %"},
		{"output_throughput<-3%", surely(100, 98, 1), false, "-2.00 %"},
		{"output_throughput<-3", surely(1000, 996, 1), true, "-4"},
		{"output_throughput<90", surely(100, 89, 1), true, "is 89"},
		{"p99_ttft_ms>-5%", surely(100, 94, 1), false, "-6.00 %"}, // fails unless improved by 5 %
		{"p99_ttft_ms>-5%", surely(100, 94, 7), true, "not significant"},
		{"failed_share>+5%", surely(0, 0, 0), false, "+0.00 %"},
		{"failed_share>+5%", surely(0, 0.1, 0.01), true, "+Inf %"},
		{"p99_ttft_ms>+5%", diff.Difference{B: some(1)}, true, "p99_ttft_ms was not measured in A"},
		{"p99_ttft_ms>5", diff.Difference{B: some(1)}, false, "is 1"},
		{"p99_ttft_ms>5", diff.Difference{A: some(1)}, true, "p99_ttft_ms was not measured in B"},
	} {
		g, err := diff.ParseGate(tc.gate)
		if err != nil {
			t.Fatal(err)
		}
		if j := g.Judge(tc.d); j.Failed != tc.failed || !strings.Contains(j.Reason, tc.reason) {
			t.Errorf("%s of %v and %v: failed %v: %s", tc.gate, tc.d.A, tc.d.B, j.Failed, j.Reason)
		}
	}
}

func TestBadGates(t *testing.T) {
	for text, want := range map[string]string{
		"p99_ttft_ms":        "no < or >",
		"p99_ttft>+5%":       `unknown metric "p99_ttft"`,
		"p101_ttft_ms>+5%":   `"p101" is none of mean`,
		"pNaN_ttft_ms>+5%":   `"pNaN" is none of mean`,
		"best_ttft_ms>+5%":   `"best" is none of mean`,
		"p99_ttft_ms>5%":     "has a sign: want +5% or -5%",
		"p99_ttft_ms>":       `"" is not a number`,
		"p99_ttft_ms>+x%":    `"+x" is not a number`,
		"p99_ttft_ms>+Inf":   "is not a number",
		"p99_ttft_ms>=+5%":   `"=+5" is not a number`,
		">+5%":               `unknown metric ""`,
		"tensor_throughput>": "unknown metric",
	} {
		if _, err := diff.ParseGate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Every number of a summary can be selected by a metric name.
func TestMetricNames(t *testing.T) {
	for _, name := range []string{
		"p99.9_ttft_ms", "p5_itl_ms", "std_e2el_ms", "max_tpot_ms", "min_ttft_ms", "mean_ttft_from_schedule_ms", "median_e2el_from_schedule_ms",
		"p99_client_lag_ms", "mean_held_ms", "completed", "duration", "max_output_tokens_per_s", "max_concurrent_requests", "offered_rate", "cached_tokens",
	} {
		metrics(t, name)
	}
	if n := len(diff.DefaultMetrics()); n != 17 {
		t.Errorf("%d metrics", n)
	}
}
