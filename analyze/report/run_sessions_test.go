package report_test

import (
	"strings"
	"testing"

	"moontide/analyze/report"
	"moontide/replay"
)

// Sessions, turns and abandoned requests are in the text; runs without any have no
// word of them.
func TestSessionsAreReported(t *testing.T) {
	t.Parallel()
	records := answers(5)
	for i := range records {
		records[i].SessionID = "s"
	}
	records[4].Class, records[4].SessionID = replay.Abandoned, "left"
	runs := report.Runs{{Info: ended(5), Result: inDetail(t, records)}}
	text := written(t, runs.Document().WriteText)
	for _, want := range []string{"\nSessions\n", "\nBy turn of the session\n", "\nBy context length\n", "\nAbandoned requests\n", "Completed sessions", "Still running"} {
		if found := strings.Contains(text, want); found != (want != "Still running") {
			t.Errorf("%q is in the text: %v", want, found)
		}
	}
	own := runs[0].Summary()["moontide"].(map[string]any)
	if own["sessions"].(map[string]any)["completed_sessions"] == nil || own["abandoned"].(map[string]any)["requests"] != 1 {
		t.Errorf("%v, %v", own["sessions"], own["abandoned"])
	}
	plain := servingText(t, ended(5), answers(5))
	if strings.Contains(plain, "Sessions") || strings.Contains(plain, "bandoned") {
		t.Error("a run without sessions has some")
	}
}
