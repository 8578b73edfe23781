package diff_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"moontide/analyze/diff"
	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/runfile"
)

func TestObjections(t *testing.T) {
	records := streamed(7, 100)
	for name, tc := range map[string]struct {
		change  func(info *runfile.Run, records []replay.Record) run.Options
		want    string
		invalid bool
		paired  bool
	}{
		"none": {func(*runfile.Run, []replay.Record) run.Options { return run.Options{} }, "", false, true},
		"INVALID": {func(_ *runfile.Run, records []replay.Record) run.Options {
			for i := range records {
				records[i].Ready -= time.Second
			}
			return run.Options{}
		}, "b is INVALID: client lag", true, true},
		"killed": {func(info *runfile.Run, _ []replay.Record) run.Options {
			info.Ended = time.Time{}
			return run.Options{}
		}, "b did not end", false, true},
		"failed": {func(info *runfile.Run, _ []replay.Record) run.Options {
			info.Failure = "disk full"
			return run.Options{}
		}, "b failed: disk full", false, true},
		"stopped": {func(info *runfile.Run, _ []replay.Record) run.Options {
			info.Stopped, info.NotSent = true, 5
			return run.Options{}
		}, "b was stopped: 5 of 100 rows were not sent", false, true},
		"speed": {func(info *runfile.Run, _ []replay.Record) run.Options {
			info.Schedule, info.Trace.Speedup = "x", 2
			return run.Options{}
		}, "a and b were sent at different speeds: 1 and 2 times", false, true},
		"rates": {func(info *runfile.Run, _ []replay.Record) run.Options {
			info.Schedule, info.Trace.Rate = "x", 2
			return run.Options{}
		}, "their schedules differ", false, true},
		"times": {func(info *runfile.Run, _ []replay.Record) run.Options { info.Schedule = "x"; return run.Options{} }, "their schedules differ", false, true},
		"part": {func(info *runfile.Run, _ []replay.Record) run.Options {
			info.Schedule, info.Rows = "x", 200
			return run.Options{}
		}, "different parts of the trace: 100 and 200 rows", false, true},
		"blocks": {func(info *runfile.Run, _ []replay.Record) run.Options {
			info.Trace.BlockSize = 16
			return run.Options{}
		}, "blocks of different sizes: 512 and 16", false, true},
		"requests": {func(_ *runfile.Run, records []replay.Record) run.Options {
			records[3].HashIDs = []uint64{5}
			return run.Options{}
		}, "different requests: 1 of 100 rows", false, false},
		"trace": {func(info *runfile.Run, records []replay.Record) run.Options {
			info.Trace.SHA256, info.Trace.Name = "u", "u.jsonl"
			records[3].OutputLength++
			return run.Options{}
		}, "different traces: t.jsonl and u.jsonl", false, false},
		"trace of the same name": {func(info *runfile.Run, records []replay.Record) run.Options {
			info.Trace.SHA256 = "0123456789"
			records[3].OutputLength++
			return run.Options{}
		}, "different traces of the name t.jsonl, with the SHA-256 t and 01234567", false, false},
		"the same trace, packed": {func(info *runfile.Run, _ []replay.Record) run.Options {
			info.Trace.SHA256 = "u"
			return run.Options{}
		}, "", false, true},
		"rows": {func(_ *runfile.Run, records []replay.Record) run.Options {
			for i := range records {
				records[i].Row += 1000
			}
			return run.Options{}
		}, "a and b have no row in common", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			info, changed := ended(), slices.Clone(records)
			opts := tc.change(&info, changed)
			a, b := read(t, "a", ended(), records, run.Options{}), read(t, "b", info, changed, opts)
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

// The objection to different random arrivals names their cause.
func TestObjectionsToDrawnArrivals(t *testing.T) {
	drawn := func(rate float64, seed uint64) *diff.Run {
		info := ended()
		info.Trace.Rate, info.Seed, info.Schedule = rate, seed, fmt.Sprint(rate, seed)
		return read(t, "x", info, streamed(7, 20), run.Options{})
	}
	for _, tc := range []struct {
		b    *diff.Run
		want string
	}{
		{drawn(5, 1), "different rates: 4 and 5 requests a second"},
		{drawn(4, 2), "drawn with different seeds, 1 and 2"},
	} {
		c := diff.Of([]*diff.Run{drawn(4, 1)}, []*diff.Run{tc.b}, diff.Options{Resamples: 20})
		if len(c.Objections) != 1 || !strings.Contains(c.Objections[0].Reason, tc.want) {
			t.Errorf("%+v, want %s", c.Objections, tc.want)
		}
	}
}
