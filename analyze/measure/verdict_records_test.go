package measure_test

import (
	"errors"
	"fmt"
	"testing"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/trace"
)

// Records that cannot be read, requests without a record, records of one row twice or of
// no row, and records whose times contradict each other make a run SUSPECT, and INVALID
// above 1 % of them.
func TestVerdictOnRecords(t *testing.T) {
	unreadable := func(n int) measure.Options {
		return measure.Options{BlockSize: 16, Unreadable: func() (int, error) { return n, errors.New("line 7: broken") }}
	}
	of100 := measure.Options{Rows: 100, Sent: 100, BlockSize: 16}
	with := func(records []replay.Record, rows ...int) []replay.Record {
		for _, row := range rows {
			rec := sound(1)[0]
			rec.Row = row
			records = append(records, rec)
		}
		return records
	}
	all := []judgement{
		{"none unreadable", sound(100), unreadable(0), measure.Valid, ""},
		{"one unreadable", sound(99), unreadable(1), measure.Suspect, "line 7: broken"},
		{"two unreadable", sound(98), unreadable(2), measure.Invalid, "line 7: broken"},
		{"all are there", sound(100), of100, measure.Valid, ""},
		{"one is missing", sound(99), of100, measure.Suspect, "records"},
		{"two are missing", sound(98), of100, measure.Invalid, "records"},
		{"one row twice", with(sound(100), 7), of100, measure.Suspect, "records"},
		{"two rows twice", with(sound(100), 7, 8), of100, measure.Invalid, "records"},
		{"a row twice in place of another", with(sound(99), 7), of100, measure.Suspect, "records"},
		{"rows of another trace", with(sound(100), 100, -1), of100, measure.Invalid, "records"},
		{"rows are unknown", with(sound(95), 7, 8), measure.Options{Sent: 100, BlockSize: 16}, measure.Valid, ""},
	}
	for name, edit := range map[string]func(rec *replay.Record){
		"first before sent": func(rec *replay.Record) { rec.First.Value = rec.Sent.Value - at(5000) },
		"last before first": func(rec *replay.Record) { rec.Last.Value = rec.First.Value - 1 },
		"done before last":  func(rec *replay.Record) { rec.Done = rec.Last.Value - at(200) },
		"negative gap":      func(rec *replay.Record) { rec.Gaps[0] = -1 },
		"visible too early": func(rec *replay.Record) { rec.FirstVisible = trace.Some(rec.First.Value - 1) },
		"visible too late":  func(rec *replay.Record) { rec.FirstVisible = trace.Some(rec.Last.Value + 1) },
	} {
		for n, want := range []measure.Level{measure.Valid, measure.Suspect, measure.Invalid} {
			records, says := sound(100), ""
			for i := range n {
				edit(&records[i])
				says = "records"
			}
			all = append(all, judgement{fmt.Sprint(name, " ", n), records, measure.Options{BlockSize: 16}, want, says})
		}
	}
	for _, test := range all {
		test.check(t)
	}
	if r := compute(t, unreadable(2), sound(98)...); r.Records != 100 {
		t.Errorf("%d records", r.Records)
	}
}

// A text whose ISL the trace only estimates proves nothing about the prompts of
// a run; the others are judged as they are without it.
func TestVerdictOnEstimatedPrompts(t *testing.T) {
	for name, tc := range map[string]struct {
		prompts, off, estimated int
		want                    measure.Level
	}{
		"all estimated":              {0, 0, 100, measure.Valid},
		"none off":                   {100, 0, 100, measure.Valid},
		"a wrong one of those meant": {50, 1, 950, measure.Invalid},
	} {
		records := prompts(tc.prompts+tc.estimated, tc.off)
		for i := range tc.estimated {
			rec := &records[tc.prompts+i]
			rec.Counts.Input = trace.Some(7)
			rec.Extra = []byte(`{"estimated": ["input_length"], "text_input": "a"}`)
		}
		r := compute(t, measure.Options{}, records...)
		if r.Verdict.Level != tc.want || r.Lengths.Prompts != tc.prompts || r.Lengths.PromptsOff != tc.off || r.Lengths.Estimated != tc.estimated {
			t.Errorf("%s: %v, %+v", name, r.Verdict, r.Lengths)
		}
		if want := 10*tc.prompts + tc.off + 7*tc.estimated; r.Input != want {
			t.Errorf("%s: %d input tokens, want %d", name, r.Input, want)
		}
	}
}
