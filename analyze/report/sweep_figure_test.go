package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/replay/bench"
	"moontide/trace"
	"moontide/trace/stats"
)

// A dot is at the mean latency in seconds and the output throughput of its run, and
// is labelled with the level. Runs without values have none.
func TestSweepSheet(t *testing.T) {
	point := func(level string, ms, rate float64, verdict run.Level) SweepPoint {
		return SweepPoint{Level: level, Result: &run.Result{
			OutputRate: trace.Some(rate), Verdict: run.Verdict{Level: verdict},
			E2EL: stats.Of([]float64{ms, 3 * ms}), TTFT: stats.Of([]float64{ms / 10}), TPOT: stats.Of([]float64{ms / 100}),
		}}
	}
	s := Sweep{Subject: "ISL 1", Axis: bench.Concurrency, Deployments: []Deployment{
		{Label: "a", Points: []SweepPoint{point("1", 500, 10, run.Valid), point("2", 1000, 15, run.Suspect), {Level: "3", Result: &run.Result{}}}},
		{Label: "b", Points: []SweepPoint{point("1", 250, 20, run.Valid)}},
	}}
	got := map[string][]figure.Series{}
	var section doc.Section
	s.addFigures(&section)
	for _, f := range section.Blocks[0].Figures {
		if want := "dots are labelled with the concurrency; * is not VALID"; f.Note != want {
			t.Errorf("%q, want %q", f.Note, want)
		}
		got[f.Title] = f.Series
	}
	want := map[string][]figure.Series{}
	for title, x := range map[string][3]float64{
		"Mean E2E latency": {1, 2, 0.5}, "Mean TTFT": {0.05, 0.1, 0.025}, "Mean TPOT": {0.005, 0.01, 0.0025}, "Per-user output": {200, 100, 400},
	} {
		want[title] = []figure.Series{
			{Name: "a", Kind: figure.Line, X: []float64{x[0], x[1]}, Y: []float64{10, 15}, Labels: []string{"1", "2*"}},
			{Name: "b", Kind: figure.Line, X: []float64{x[2]}, Y: []float64{20}, Labels: []string{"1"}},
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var page strings.Builder
	if err := s.Document().WriteHTML(&page); err != nil || strings.Count(page.String(), "<svg") != len(got) {
		t.Errorf("the page has %d of %d figures: %v", strings.Count(page.String(), "<svg"), len(got), err)
	}
}
