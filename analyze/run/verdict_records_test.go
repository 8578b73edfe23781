package run_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/runfile"
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

// Requests without a record, and records of one row twice or of no row, make a run
// SUSPECT, and INVALID above 1 %.
func TestMissingAndRepeatedRecords(t *testing.T) {
	for _, test := range []struct {
		name          string
		rows, missing int
		repeated      []int
		want          run.Level
	}{
		{"all are there", 100, 0, nil, run.Valid},
		{"one is missing", 100, 1, nil, run.Suspect},
		{"two are missing", 100, 2, nil, run.Invalid},
		{"one row twice", 100, 0, []int{7}, run.Suspect},
		{"two rows twice", 100, 0, []int{7, 8}, run.Invalid},
		{"a row twice in place of another", 100, 1, []int{7}, run.Suspect},
		{"rows of another trace", 100, 0, []int{100, -1}, run.Invalid},
		{"rows are unknown", 0, 5, []int{7, 8}, run.Valid},
	} {
		var records []replay.Record
		for i := range 100 - test.missing {
			rec := sound(1)[0]
			rec.Row = i
			records = append(records, rec)
		}
		for _, row := range test.repeated {
			rec := sound(1)[0]
			rec.Row = row
			records = append(records, rec)
		}
		v := compute(t, run.Options{Rows: test.rows, Sent: 100, BlockSize: 16}, records...).Verdict
		if v.Level != test.want {
			t.Errorf("%s: %v, want %v", test.name, v, test.want)
		}
	}
}

// The chunks that were read late are counted by process, so those of a run that was
// killed and resumed are judged by the records too.
func TestLateReadsOfResumedRun(t *testing.T) {
	records := stamped(100, 50)
	for chunks, want := range map[int]run.Level{100: run.Valid, 99: run.Invalid} {
		v := compute(t, run.Options{Merges: runfile.Merges{Chunks: uint64(chunks)}, ReadDelay: runfile.ReadDelay{Reads: 1}}, records...).Verdict
		if v.Level != want {
			t.Errorf("%d of 100 chunks counted: %v, want %v", chunks, v, want)
		}
	}
}

// Records whose times contradict each other make a run SUSPECT, and INVALID above 1 %.
func TestImpossibleRecords(t *testing.T) {
	for name, edit := range map[string]func(rec *replay.Record){
		"first before sent": func(rec *replay.Record) { rec.First.Value = rec.Sent.Value - at(5000) },
		"last before first": func(rec *replay.Record) { rec.Last.Value = rec.First.Value - 1 },
		"done before last":  func(rec *replay.Record) { rec.Done = rec.Last.Value - at(200) },
		"negative gap":      func(rec *replay.Record) { rec.Gaps[0] = -1 },
	} {
		for n, want := range map[int]run.Level{0: run.Valid, 1: run.Suspect, 2: run.Invalid} {
			records := sound(100)
			for i := range n {
				edit(&records[i])
			}
			v := compute(t, run.Options{BlockSize: 16}, records...).Verdict
			if i := slices.IndexFunc(v.Evidence, func(e run.Evidence) bool { return e.Check == "records" }); n > 0 && (i < 0 || v.Evidence[i].Level != want) || v.Level < want {
				t.Errorf("%s: %d of 100: %v, want %v", name, n, v, want)
			}
		}
	}
}
