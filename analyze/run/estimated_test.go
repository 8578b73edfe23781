package run_test

import (
	"testing"

	"moontide/analyze/run"
	"moontide/trace"
)

// A text whose ISL the trace only estimates proves nothing about the prompts of
// a run; the others are judged as they are without it.
func TestVerdictOnEstimatedPrompts(t *testing.T) {
	for name, tc := range map[string]struct {
		prompts, off, estimated int
		want                    run.Level
	}{
		"all estimated":              {0, 0, 100, run.Valid},
		"none off":                   {100, 0, 100, run.Valid},
		"a wrong one of those meant": {50, 1, 950, run.Invalid},
	} {
		records := prompts(tc.prompts+tc.estimated, tc.off)
		for i := range tc.estimated {
			rec := &records[tc.prompts+i]
			rec.Counts.Input = trace.Some(7)
			rec.Extra = []byte(`{"estimated": ["input_length"], "text_input": "a"}`)
		}
		r := compute(t, run.Options{}, records...)
		if r.Verdict.Level != tc.want || r.Lengths.Prompts != tc.prompts || r.Lengths.PromptsOff != tc.off || r.Lengths.Estimated != tc.estimated {
			t.Errorf("%s: %v, %+v", name, r.Verdict, r.Lengths)
		}
		if want := 10*tc.prompts + tc.off + 7*tc.estimated; r.Input != want {
			t.Errorf("%s: %d input tokens, want %d", name, r.Input, want)
		}
	}
}
