package diff_test

import (
	"math"
	"slices"
	"testing"

	"moontide/analyze/diff"
	"moontide/analyze/run"
)

// TTFVT is compared where an answer of either side began with reasoning, with the
// statistics of TTFT.
func TestReasoningIsCompared(t *testing.T) {
	plain, reasoned := streamed(1, 40), streamed(1, 40)
	for i := range reasoned {
		reasoned[i].FirstVisible = reasoned[i].Last
	}
	a, b := read(t, "a", ended(), plain, run.Options{}), read(t, "b", ended(), reasoned, run.Options{})
	for name, test := range map[string]struct {
		a, b  *diff.Run
		asked []run.Metric
		want  []string
	}{
		"neither":           {a, a, metrics(t, "mean_ttft_ms", "p99_ttft_ms", "mean_itl_ms"), []string{"mean_ttft_ms", "p99_ttft_ms", "mean_itl_ms"}},
		"one":               {a, b, metrics(t, "failed_share", "mean_ttft_ms", "p99_ttft_ms", "mean_itl_ms"), []string{"failed_share", "mean_ttft_ms", "p99_ttft_ms", "mean_ttfvt_ms", "p99_ttfvt_ms", "mean_itl_ms"}},
		"the other":         {b, a, metrics(t, "mean_ttft_ms"), []string{"mean_ttft_ms", "mean_ttfvt_ms"}},
		"TTFT is not asked": {b, b, metrics(t, "mean_itl_ms"), []string{"mean_itl_ms"}},
		"asked for":         {b, b, metrics(t, "mean_ttft_ms", "p99_ttft_ms", "mean_itl_ms", "p99_ttfvt_ms"), []string{"mean_ttft_ms", "p99_ttft_ms", "mean_ttfvt_ms", "p99_ttfvt_ms", "mean_itl_ms"}},
	} {
		c := diff.Of([]*diff.Run{test.a}, []*diff.Run{test.b}, diff.Options{Metrics: test.asked})
		var got []string
		for _, d := range c.Differences {
			got = append(got, d.Metric.Key)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: compared %v, want %v", name, got, test.want)
		}
	}
	// TTFVT of b is E2EL of both.
	d := find(t, diff.Of([]*diff.Run{a}, []*diff.Run{b}, diff.Options{}), "mean_ttfvt_ms")
	if want := a.Result.E2EL.Mean - a.Result.TTFT.Mean; math.Abs(d.Difference.Value-want) > 1e-9 || !d.Interval.Set || !d.Significant() {
		t.Errorf("TTFVT: %+v, want a difference of %v", d, want)
	}
}
