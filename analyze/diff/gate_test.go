package diff_test

import (
	"strings"
	"testing"

	"moontide/analyze/diff"
	"moontide/analyze/slo"
	"moontide/trace"
)

func TestGate(t *testing.T) {
	some := func(x float64) trace.Opt[float64] { return trace.Some(x) }
	surely := func(a, b, margin float64) diff.Difference {
		return diff.Difference{A: some(a), B: some(b), CountA: 500, CountB: 500, Difference: some(b - a), Interval: trace.Some(diff.Interval{Low: b - a - margin, High: b - a + margin})}
	}
	bare := diff.Difference{A: some(100), B: some(110), CountA: 500, CountB: 500, Difference: some(10)}
	few := func(a, b int) diff.Difference {
		return diff.Difference{A: some(100), B: some(100), CountA: a, CountB: b, Difference: some(0)}
	}
	for _, tc := range []struct {
		gate   string
		d      diff.Difference
		failed bool
		reason string
	}{
		{"p99_ttft_ms>+5%", surely(100, 106, 1), true, ": +6.00 %, margin -1.00 %"},
		{"p99_ttft_ms>+5%", surely(100, 104, 1), false, "+4.00 %"},
		{"p99_ttft_ms>+5%", surely(100, 106, 7), false, "+6.00 %, margin 5.00 %: not significant, counts as no change"},
		{"p99_ttft_ms>+5%", bare, true, "+10.00 %, margin -5.00 %: no confidence interval"},
		{"p99_ttft_ms > +20", surely(100, 121, 1), true, "+21.00 ms, margin -1.00 ms"},
		{"p99_ttft_ms>+20", surely(100, 119, 1), false, "+19.00 ms"},
		{"p99_ttft_ms>20", surely(30, 25, 1), true, ": 25.00 ms, margin -5.00 ms"},
		{"p99_ttft_ms>20", surely(30, 15, 100), false, ": 15.00 ms, margin 5.00 ms"},
		{"output_throughput<-3%", surely(100, 96, 1), true, "-4.00 %"},
		{"output_throughput<-3%", surely(100, 98, 1), false, "-2.00 %"},
		{"output_throughput<-3", surely(1000, 996, 1), true, "-4.00 tok/s"},
		{"output_throughput<90", surely(100, 89, 1), true, ": 89.00 tok/s"},
		{"p99_ttft_ms>-5%", surely(100, 94, 1), false, "-6.00 %"}, // fails unless improved by 5 %
		{"p99_ttft_ms>-5%", surely(100, 94, 7), true, "not significant"},
		{"failed_share>+5%", surely(0, 0, 0), false, "+0.00 %"},
		{"failed_share>+5%", surely(0, 0.1, 0.01), true, "+Inf %"},
		{"p99_ttft_ms>+5%", diff.Difference{B: some(1)}, true, "not measured in A"},
		{"p99_ttft_ms>5", diff.Difference{B: some(1), CountB: 500}, false, "1.00 ms"},
		{"p99_ttft_ms>5", diff.Difference{A: some(1)}, true, "not measured in B"},
		{"p99_ttft_ms>+5%", few(500, 499), true, "too few requests for p99: 499, needs 500 (5 beyond it)"},
		{"p99_ttft_ms>+5%", few(499, 500), true, "too few requests for p99: 499"},
		{"p99_ttft_ms>+5%", few(500, 500), false, ""},
		{"p99_ttft_ms>500", few(3, 500), false, ""}, // only B counts
		{"mean_ttft_ms>+5%", few(1, 1), false, ""},
	} {
		c, err := slo.ParseCondition(tc.gate)
		if err != nil {
			t.Fatal(err)
		}
		if j := diff.Judge(slo.Gate{Condition: c, Forbidden: true}, tc.d); j.Passed == tc.failed || !strings.Contains(j.String(), tc.reason) {
			t.Errorf("%s of %v and %v: passed %v: %s", tc.gate, tc.d.A, tc.d.B, j.Passed, j)
		}
	}
}
