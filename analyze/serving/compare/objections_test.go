package compare_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"moontide/analyze/serving"
	"moontide/analyze/serving/compare"
	"moontide/replay"
)

func TestObjections(t *testing.T) {
	records := streamed(7, 100)
	for name, tc := range map[string]struct {
		change  func(run *replay.Run, records []replay.Record) serving.Options
		want    string
		invalid bool
		paired  bool
	}{
		"none": {func(*replay.Run, []replay.Record) serving.Options { return serving.Options{} }, "", false, true},
		"INVALID": {func(_ *replay.Run, records []replay.Record) serving.Options {
			for i := range records {
				records[i].Ready -= time.Second
			}
			return serving.Options{}
		}, "b is INVALID: client lag", true, true},
		"killed": {func(run *replay.Run, _ []replay.Record) serving.Options {
			run.Ended = time.Time{}
			return serving.Options{}
		}, "b did not end", false, true},
		"failed": {func(run *replay.Run, _ []replay.Record) serving.Options {
			run.Failure = "disk full"
			return serving.Options{}
		}, "b failed: disk full", false, true},
		"stopped": {func(run *replay.Run, _ []replay.Record) serving.Options {
			run.Stopped, run.NotSent = true, 5
			return serving.Options{}
		}, "b was stopped: 5 of 100 rows were not sent", false, true},
		"speed": {func(run *replay.Run, _ []replay.Record) serving.Options {
			run.Schedule, run.Trace.Speedup = "x", 2
			return serving.Options{}
		}, "a and b were sent at different speeds: 1 and 2 times", false, true},
		"rates": {func(run *replay.Run, _ []replay.Record) serving.Options {
			run.Schedule, run.Trace.Rate = "x", 2
			return serving.Options{}
		}, "their schedules differ", false, true},
		"times": {func(run *replay.Run, _ []replay.Record) serving.Options { run.Schedule = "x"; return serving.Options{} }, "their schedules differ", false, true},
		"part": {func(run *replay.Run, _ []replay.Record) serving.Options {
			run.Schedule, run.Rows = "x", 200
			return serving.Options{}
		}, "different parts of the trace: 100 and 200 rows", false, true},
		"blocks": {func(run *replay.Run, _ []replay.Record) serving.Options {
			run.Trace.BlockSize = 16
			return serving.Options{}
		}, "blocks of different sizes: 512 and 16", false, true},
		"requests": {func(_ *replay.Run, records []replay.Record) serving.Options {
			records[3].HashIDs = []uint64{5}
			return serving.Options{}
		}, "different requests: 1 of 100 rows", false, false},
		"trace": {func(run *replay.Run, records []replay.Record) serving.Options {
			run.Trace.SHA256, run.Trace.Name = "u", "u.jsonl"
			records[3].OutputLength++
			return serving.Options{}
		}, "different traces: t.jsonl and u.jsonl", false, false},
		"trace of the same name": {func(run *replay.Run, records []replay.Record) serving.Options {
			run.Trace.SHA256 = "0123456789"
			records[3].OutputLength++
			return serving.Options{}
		}, "different traces of the name t.jsonl, with the SHA-256 t and 01234567", false, false},
		"the same trace, packed": {func(run *replay.Run, _ []replay.Record) serving.Options {
			run.Trace.SHA256 = "u"
			return serving.Options{}
		}, "", false, true},
		"rows": {func(_ *replay.Run, records []replay.Record) serving.Options {
			for i := range records {
				records[i].Row += 1000
			}
			return serving.Options{}
		}, "a and b have no row in common", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			run, changed := ended(), slices.Clone(records)
			opts := tc.change(&run, changed)
			a, b := read(t, "a", ended(), records, serving.Options{}), read(t, "b", run, changed, opts)
			c := compare.Of([]*compare.Run{a}, []*compare.Run{b}, compare.Options{Resamples: 20})
			var got compare.Objection
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

// Arrivals that were drawn say why they are not the same.
func TestObjectionsToDrawnArrivals(t *testing.T) {
	drawn := func(rate float64, seed uint64) *compare.Run {
		run := ended()
		run.Trace.Rate, run.Seed, run.Schedule = rate, seed, fmt.Sprint(rate, seed)
		return read(t, "x", run, streamed(7, 20), serving.Options{})
	}
	for _, tc := range []struct {
		b    *compare.Run
		want string
	}{
		{drawn(5, 1), "different rates: 4 and 5 requests a second"},
		{drawn(4, 2), "drawn with different seeds, 1 and 2"},
	} {
		c := compare.Of([]*compare.Run{drawn(4, 1)}, []*compare.Run{tc.b}, compare.Options{Resamples: 20})
		if len(c.Objections) != 1 || !strings.Contains(c.Objections[0].Reason, tc.want) {
			t.Errorf("%+v, want %s", c.Objections, tc.want)
		}
	}
}
