package run_test

import (
	"errors"
	"strings"
	"testing"

	"moontide/analyze/run"
	"moontide/replay"
)

// Records that cannot be read make a run SUSPECT, and INVALID above 1 % of them.
func TestUnreadableRecords(t *testing.T) {
	for unreadable, want := range map[int]run.Level{0: run.Valid, 1: run.Suspect, 2: run.Invalid} {
		var records []replay.Record
		for i := range 100 - unreadable {
			records = append(records, answered(float64(i), 100))
		}
		result := compute(t, run.Options{Unreadable: func() (int, error) { return unreadable, errors.New("line 7: broken") }}, records...)
		found := false
		for _, e := range result.Verdict.Evidence {
			if e.Check == "records" {
				found = true
				if e.Level != want || !strings.Contains(e.Text, "line 7: broken") {
					t.Errorf("%d unreadable: %v: %s", unreadable, e.Level, e.Text)
				}
			}
		}
		if found != (unreadable > 0) || result.Verdict.Level < want || result.Records != 100 {
			t.Errorf("%d unreadable: found %v, verdict %v, %d records", unreadable, found, result.Verdict.Level, result.Records)
		}
	}
}
