package bench_test

import (
	"strings"
	"testing"

	"moontide/analyze/run"
	"moontide/replay/bench"
)

// Agents with live answers over chat messages on vLLM 0.32, with a model of random weights:
// the text of an answer encodes to other tokens than were generated, so prompts have
// 41,585 tokens instead of 41,472 and 15 of 36 turns have fewer cached tokens than they
// would with the generated ones. The run is valid and says so.
func TestLiveChatOnVLLM(t *testing.T) {
	result, err := bench.Measure(bench.MeasureConfig{}, "testdata/live-chat")
	if err != nil {
		t.Fatal(err)
	}
	m := result.Metrics
	if l := m.Lengths; m.Input != 41_585 || l.Prompts != 36 || l.PromptsOff != 0 || l.AsText != 30 || l.TextTokens != 41_585-41_472 {
		t.Errorf("%d prompt tokens: %+v", m.Input, l)
	}
	if p := m.Cache.Prediction; p.Predicted != 32_928 || p.Measured != 32_256 || p.AsText != 1312 || p.Equal != 36 || p.TemplateTokens != 2 {
		t.Errorf("%+v", p)
	}
	said := false
	for _, e := range m.Verdict.Evidence {
		said = said || strings.HasPrefix(e.Text, "30 prompts contain answers as text") && strings.Contains(e.Text, "+113 tokens in all (0.272 % of the input)")
	}
	if m.Verdict.Level != run.Valid || !said {
		t.Errorf("%+v", m.Verdict)
	}
}
