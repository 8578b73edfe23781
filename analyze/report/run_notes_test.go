package report_test

import (
	"regexp"
	"strings"
	"testing"

	"moontide/analyze/report"
)

// Answers without [DONE] are counted in every format.
func TestMissingDoneIsReported(t *testing.T) {
	t.Parallel()
	records := answers(5)
	for i := range records {
		records[i].MissingDone = i < 2
	}
	runs := report.Runs{{Info: ended(5), Result: inDetail(t, records)}}
	document, vllm := runs.Document(), runs.Block(report.VLLM)
	for name, text := range map[string]string{
		"text": written(t, document.WriteText), "Markdown": written(t, document.WriteMarkdown), "HTML": written(t, document.WriteHTML),
		"vllm": written(t, vllm.WriteText), "JSON": written(t, runs.JSON),
	} {
		text = strings.ReplaceAll(text, `\[`, "[") // Markdown
		if text = regexp.MustCompile(`\s+`).ReplaceAllString(text, " "); !strings.Contains(text, "2 answers ended without [DONE]") {
			t.Errorf("%s does not have the note:\n%s", name, text)
		}
	}
	if n := runs[0].Summary()["moontide"].(map[string]any)["missing_done"]; n != 2 {
		t.Errorf("the summary counts %v", n)
	}
	if text := servingText(t, ended(5), answers(5)); strings.Contains(text, "[DONE]") {
		t.Error("a run without such answers has the note")
	}
}
