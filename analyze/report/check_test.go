package report_test

import (
	"strings"
	"testing"

	"moontide/analyze/report"
	"moontide/trace/check"
	"moontide/trace/tracetest"
)

func checkText(t *testing.T, findings ...check.Finding) string {
	t.Helper()
	return written(t, report.Check{Name: "example.jsonl", Report: &check.Report{Requests: 5, Findings: findings}}.Document().WriteText)
}

func TestCheckText(t *testing.T) {
	tracetest.Golden(t, "testdata/check.txt", checkText(t,
		check.Finding{Kind: check.TimeBackwards, Severity: check.Error, Message: "The row arrives before the row above it.", Count: 1, Of: check.OfRows,
			Examples: []check.Example{{Line: 7, Value: "timestamp 5 after 9 on line 6"}}},
		check.Finding{Kind: check.TwoParents, Severity: check.Warning, Message: "The id is a partial block and a full one.", Count: 1200, Of: check.OfIDs,
			Examples: []check.Example{{Line: 3, Value: "id 1"}, {Line: 12_345, Value: "id 18446744073709551615 \x1b[2J"}}},
		check.Finding{Kind: check.TimeGrid, Severity: check.Note, Message: "Timestamps are on a grid.", Evidence: "3000 ms apart", Count: 5, Of: check.OfRows}))
}

func TestCheckVerdict(t *testing.T) {
	warning, note := check.Finding{Severity: check.Warning}, check.Finding{Severity: check.Note}
	for _, test := range []struct {
		findings []check.Finding
		says     string
	}{
		{nil, "No problems found: this trace can be replayed faithfully.\n"},
		{[]check.Finding{note}, "\n  This trace can be replayed faithfully.\n"},
		{[]check.Finding{note, warning}, "This trace can be replayed faithfully, except for the warnings above.\n"},
		{[]check.Finding{warning, {Severity: check.Error}}, "cannot be replayed faithfully.\n"},
	} {
		if got := checkText(t, test.findings...); !strings.HasSuffix(got, test.says) {
			t.Errorf("got\n%s\nwant %q at its end", got, test.says)
		}
	}
}
