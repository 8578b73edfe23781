package diff_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"moontide/analyze/diff"
	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/runfile"
)

func TestObjections(t *testing.T) {
	records := streamed(7, 100)
	for i := range records {
		records[i].Model = "base"
	}
	for name, tc := range map[string]struct {
		change  func(info *runfile.Run, records []replay.Record)
		want    string
		invalid bool
		paired  bool
	}{
		"none": {func(*runfile.Run, []replay.Record) {}, "", false, true},
		"INVALID": {func(_ *runfile.Run, records []replay.Record) {
			for i := range records {
				records[i].Ready -= time.Second
			}
		}, "b is INVALID: client lag", true, true},
		"killed":  {func(info *runfile.Run, _ []replay.Record) { info.Ended = time.Time{} }, "b did not end", false, true},
		"failed":  {func(info *runfile.Run, _ []replay.Record) { info.Failure = "disk full" }, "b failed: disk full", false, true},
		"stopped": {func(info *runfile.Run, _ []replay.Record) { info.Stopped, info.NotSent = true, 5 }, "b was stopped: 5 of 100 rows were not sent", false, true},
		"speed":   {func(info *runfile.Run, _ []replay.Record) { info.Schedule, info.Settings.Pacing.Speedup = "x", 2 }, "a and b were sent at different times; speedup: not set and 2", false, true},
		"times":   {func(info *runfile.Run, _ []replay.Record) { info.Schedule = "x" }, "a and b were sent at different times", false, true},
		"part":    {func(info *runfile.Run, _ []replay.Record) { info.Schedule, info.Rows = "x", 200 }, "different parts of the trace: 100 and 200 rows", false, true},
		"blocks":  {func(info *runfile.Run, _ []replay.Record) { info.Trace.BlockSize = 16 }, "blocks of different sizes: 512 and 16", false, true},
		"requests": {func(_ *runfile.Run, records []replay.Record) {
			records[3].HashIDs = []uint64{5}
		}, "different requests: 1 of 100 rows", false, false},
		"models": {func(_ *runfile.Run, records []replay.Record) {
			records[3].Model, records[5].Model = "adapter", "adapter"
		}, "asked for other models in 2 of 100 rows", false, false},
		"another model": {func(_ *runfile.Run, records []replay.Record) {
			for i := range records {
				records[i].Model = ""
			}
		}, "", false, true},
		"trace": {func(info *runfile.Run, records []replay.Record) {
			info.Trace.SHA256, info.Trace.Name = "u", "u.jsonl"
			records[3].OutputLength++
		}, "different traces: t.jsonl with the SHA-256 t and u.jsonl with u", false, false},
		"the same trace, packed": {func(info *runfile.Run, _ []replay.Record) { info.Trace.SHA256 = "u" }, "", false, true},
		"rows": {func(_ *runfile.Run, records []replay.Record) {
			for i := range records {
				records[i].Row += 1000
			}
		}, "a and b have no row in common", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			info, changed := ended(), slices.Clone(records)
			tc.change(&info, changed)
			a, b := read(t, "a", ended(), records, measure.Options{}), read(t, "b", info, changed, measure.Options{})
			c := diff.Of([]*diff.Run{a}, []*diff.Run{b}, diff.Options{Resamples: 20})
			var got diff.Objection
			for _, o := range c.Objections {
				got = o
			}
			if !strings.Contains(got.Reason, tc.want) || (tc.want == "") != (len(c.Objections) == 0) || len(c.Objections) > 1 || got.Invalid != tc.invalid || c.Paired != tc.paired {
				t.Errorf("%+v, paired %v", c.Objections, c.Paired)
			}
			if c.Paired != (len(c.Requests) > 0) {
				t.Errorf("%d latencies are paired", len(c.Requests))
			}
		})
	}
}
