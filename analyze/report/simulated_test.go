package report_test

import (
	"strings"
	"testing"

	"moontide/analyze/diff"
	"moontide/analyze/report"
	"moontide/replay"
)

// Numbers of a simulated run must never pass for those of a server.
func TestSimulatedRunsAreMarkedInEveryForm(t *testing.T) {
	server := comparedRun(t, "runs/a", "http://a", 0, func([]replay.Record) {})
	simulated := *server
	simulated.Name, simulated.Run.Target.Simulated = "runs/b", true
	compare := func(b *diff.Run) map[string]string {
		c := report.Diff{Comparison: diff.Of([]*diff.Run{server}, []*diff.Run{b}, diff.Options{}), NameA: "a", NameB: "b"}
		d := c.Document()
		return map[string]string{
			"text": written(t, d.WriteText), "markdown": written(t, d.WriteMarkdown), "csv": written(t, d.WriteCSV),
			"html": written(t, d.WriteHTML), "json": written(t, c.JSON),
		}
	}
	without := compare(server)
	for form, text := range compare(&simulated) {
		mark := "Simulated: runs/b: these numbers come from the embedded simulated endpoint"
		if form == "json" {
			mark = `"simulated": true`
		}
		if !strings.Contains(strings.Join(strings.Fields(text), " "), mark) {
			t.Errorf("%s of a comparison with a simulated run has no mark:\n%s", form, text)
		}
		if strings.Contains(without[form], "Simulated:") || strings.Contains(without[form], `"simulated": true`) {
			t.Errorf("%s of a comparison of servers has the mark", form)
		}
	}
	runs := reported(t)
	runs[0].Info.Target.Simulated = false
	picture := written(t, runs.Document().WritePNG)
	runs[0].Info.Target.Simulated = true
	if written(t, runs.Document().WritePNG) == picture {
		t.Error("the PNG of a simulated run has no mark")
	}
}
