package diff_test

import (
	"math"
	"slices"
	"testing"

	"moontide/analyze/diff"
	"moontide/analyze/run"
)

// TTFVT is compared where an answer of either side began with reasoning.
func TestReasoningIsCompared(t *testing.T) {
	reasoned := streamed(1, 40)
	for i := range reasoned {
		reasoned[i].FirstVisible = reasoned[i].Last
	}
	a, b := read(t, "a", ended(), streamed(1, 40), run.Options{}), read(t, "b", ended(), reasoned, run.Options{})
	for _, sides := range [][2]*diff.Run{{a, a}, {a, b}, {b, a}} {
		c := diff.Of(sides[:1], sides[1:], diff.Options{})
		compared := slices.ContainsFunc(c.Differences, func(d diff.Difference) bool { return d.Metric.Key == "p99_ttfvt_ms" })
		if compared != slices.Contains(sides[:], b) {
			t.Errorf("TTFVT is compared: %v", compared)
		}
	}
	// TTFVT of b is E2EL of both.
	d := find(t, diff.Of([]*diff.Run{a}, []*diff.Run{b}, diff.Options{}), "mean_ttfvt_ms")
	if want := a.Result.E2EL.Mean - a.Result.TTFT.Mean; math.Abs(d.Difference.Value-want) > 1e-9 || !d.Interval.Set || !d.Significant() {
		t.Errorf("TTFVT: %+v, want a difference of %v", d, want)
	}
}
