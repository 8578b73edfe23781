package report_test

import (
	"strings"
	"testing"

	"moontide/analyze/measure"
	"moontide/analyze/report"
)

// TTFVT and reasoning tokens are shown where an answer began with reasoning, in
// every form but that of vLLM, and nowhere else unless asked for.
func TestReasoningIsShownWhereThereIsSome(t *testing.T) {
	plain := report.Run{Name: "plain", Info: ended(5), Result: inDetail(t, answers(5))}
	reasoning := report.Run{Name: "reasoning", Info: ended(5), Result: inDetail(t, reasoned(answers(5)))}
	asked := plain
	asked.View.Latencies = []measure.Latency{measure.TTFVT}
	const note = "2 answers have no visible text, because they ended during reasoning"
	for name, test := range map[string]struct {
		runs                report.Runs
		ttfvt, tokens, note bool
	}{
		"without":     {report.Runs{plain}, false, false, false},
		"with":        {report.Runs{reasoning}, true, true, true},
		"one of two":  {report.Runs{plain, reasoning}, true, true, true},
		"asked for":   {report.Runs{asked}, true, false, false},
		"two without": {report.Runs{plain, plain}, false, false, false},
	} {
		d := test.runs.Document()
		text := strings.Join(strings.Fields(written(t, d.WriteText)), " ")
		if shown := strings.Contains(strings.ReplaceAll(text, "TTFVT excludes them", ""), "TTFVT"); shown != test.ttfvt {
			t.Errorf("%s: TTFVT is shown: %v", name, shown)
		}
		if strings.Contains(text, "Mean reasoning length") != test.tokens || strings.Contains(text, note) != test.note {
			t.Errorf("%s: reasoning in:\n%s", name, text)
		}
		csv := written(t, d.WriteCSV)
		if strings.Contains(csv, "p99_ttfvt_ms") != test.ttfvt || strings.Contains(csv, "mean_reasoning_tokens") != test.tokens {
			t.Errorf("%s: CSV:\n%s", name, csv)
		}
	}
	if text := written(t, report.Runs{reasoning}.Block(report.VLLM).WriteText); strings.Contains(text, "TTFVT (ms)") || !strings.Contains(text, note) {
		t.Errorf("vLLM's block:\n%s", text)
	}
}

// The JSON always has TTFVT, so that its keys do not depend on the server.
func TestReasoningInJSON(t *testing.T) {
	for name, want := range map[string]map[string]any{
		"plain":     {"mean_ttfvt_ms": 102.0, "reasoning_answers": 0.0, "reasoning_only": nil, "mean_reasoning_tokens": nil},
		"reasoning": {"mean_ttfvt_ms": 403.0 / 3, "reasoning_answers": 4.0, "reasoning_only": 2.0, "mean_reasoning_tokens": 2.5},
	} {
		records := answers(5) // TTFT of 100 to 104 ms
		if name == "reasoning" {
			records = reasoned(records) // TTFVT of 100, 151 and 152 ms
		}
		own := summary(t, ended(5), records)["moontide"].(map[string]any)
		for key, value := range want {
			if got, there := own[key]; !there || got != value {
				t.Errorf("%s: %s is %v, want %v", name, key, got, value)
			}
		}
	}
}
