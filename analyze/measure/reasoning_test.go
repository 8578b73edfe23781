package measure_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/analyze/measure"
	"moontide/analyze/slo"
	"moontide/replay"
	"moontide/trace"
)

// reasoned are four answers whose first tokens arrive after 100, 100, 200 and 50 ms
// and whose first visible ones after 100, 300 and 200 ms; the last has none.
func reasoned() []replay.Record {
	records := []replay.Record{
		answered(0, 100, 110), answered(1000, 1100, 1200, 1300, 1310), answered(2000, 2200, 2300), answered(3000, 3050, 3060),
	}
	for i := range records {
		records[i].Row = i
	}
	records[1].FirstVisible = instant(1300)
	records[1].Counts.Reasoning = trace.Some(2)
	records[2].Counts.Reasoning = trace.Some(0)
	records[3].ReasoningOnly = true
	records[3].Counts.Reasoning = trace.Some(3)
	return records
}

func TestTTFVT(t *testing.T) {
	r := compute(t, measure.Options{}, reasoned()...)
	if diff := cmp.Diff(spread{3, 600, 100, 200, 200}, spreadOf(r.TTFVT), close); diff != "" {
		t.Errorf("TTFVT: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(spread{4, 450, 50, 100, 112.5}, spreadOf(r.TTFT), close); diff != "" {
		t.Errorf("TTFT: -want +got:\n%s", diff)
	}
	if r.Reasoned != 2 || r.ReasoningOnly != 1 || r.Reasoning != trace.Some(5.0/3) {
		t.Errorf("%d reasoned, %d of them only, %v tokens", r.Reasoned, r.ReasoningOnly, r.Reasoning)
	}
}

// Objectives and gates know TTFVT, also by the name that other tools have for it. An
// answer that shows nothing meets no limit.
func TestTTFVTObjective(t *testing.T) {
	for text, met := range map[string]int{"ttfvt:1e9": 3, "ttfo:200": 2, "TTFVT:100": 1, "ttft:100": 3} {
		objectives, err := slo.ParseObjectives(text)
		if err != nil {
			t.Fatal(err)
		}
		if g := compute(t, measure.Options{Objectives: objectives}, reasoned()...).Goodput; g.Good != met || g.Requests != 4 {
			t.Errorf("%s: met by %d of %d, want %d", text, g.Good, g.Requests, met)
		}
	}
	r := compute(t, measure.Options{}, reasoned()...)
	for text, passes := range map[string]bool{
		"mean_ttfvt<200.1ms": true, "mean_ttfvt_ms<199": false, "max_ttfo<301ms": true, "mean_reasoning_tokens<2": true, "mean_reasoning_tokens<1.6": false,
	} {
		if j := judged(t, text, r); j.Passed != passes {
			t.Errorf("%s: %+v", text, j)
		}
	}
}
