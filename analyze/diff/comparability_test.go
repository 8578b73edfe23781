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
	"moontide/trace"
)

func TestObjections(t *testing.T) {
	records := streamed(7, 100)
	for i := range records {
		records[i].Model = "base"
	}
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
		"models": {func(_ *runfile.Run, records []replay.Record) run.Options {
			records[3].Model, records[5].Model = "adapter", "adapter"
			return run.Options{}
		}, "asked for other models in 2 of 100 rows", false, false},
		"another model": {func(_ *runfile.Run, records []replay.Record) run.Options {
			for i := range records {
				records[i].Model = ""
			}
			return run.Options{}
		}, "", false, true},
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

// A run that started warm is not compared with one that started cold, whether the
// server's counts show it or the run's record.
func TestObjectionsToAWarmStart(t *testing.T) {
	counted := func(cached int) []replay.Record { // the server's cached tokens in all requests
		records := streamed(7, 100)
		for i := range records {
			records[i].HashIDs = []uint64{uint64(2 * i), uint64(2*i + 1)}
			records[i].InputLength = 1000
			records[i].Counts.Input, records[i].Counts.Cached = trace.Some(1000), trace.Some(cached)
		}
		return records
	}
	with := func(change func(info *runfile.Run)) runfile.Run {
		info := ended()
		change(&info)
		return info
	}
	same, measured := func(*runfile.Run) {}, run.Options{BlockSize: 512}
	for name, tc := range map[string]struct {
		a, b         func(info *runfile.Run)
		inA, inB     int
		want, absent string
	}{
		"both cold":            {same, same, 0, 0, "", "warm"},
		"both warm":            {same, same, 512, 512, "", "started warm"},
		"B warm":               {same, same, 0, 512, "b started warm and a cold: in b, ", ""},
		"A warm":               {same, same, 512, 0, "a started warm and b cold: in a, ", ""},
		"B warmed up":          {same, func(info *runfile.Run) { info.Warmup = 20 }, 0, 0, "in b, 20 warm-up requests were sent first", ""},
		"both warmed up":       {func(info *runfile.Run) { info.Warmup = 10 }, func(info *runfile.Run) { info.Warmup = 20 }, 0, 0, "", "warm"},
		"A resumed":            {func(info *runfile.Run) { info.Resumed = []runfile.Resumption{{SentAgain: 3}} }, same, 0, 0, "in a, 3 requests were sent again", ""},
		"A resumed when idle":  {func(info *runfile.Run) { info.Resumed = []runfile.Resumption{{RowsDone: 50}} }, same, 0, 0, "", "warm"},
		"B warm and warmed up": {same, func(info *runfile.Run) { info.Warmup = 20 }, 0, 512, "warm-up requests", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := read(t, "a", with(tc.a), counted(tc.inA), measured), read(t, "b", with(tc.b), counted(tc.inB), measured)
			c := diff.Of([]*diff.Run{a}, []*diff.Run{b}, diff.Options{Resamples: 20})
			var reasons []string
			for _, o := range c.Objections {
				reasons = append(reasons, o.Reason)
			}
			all := strings.Join(reasons, "; ")
			if !strings.Contains(all, tc.want) || (tc.want == "") != (all == "") || tc.absent != "" && strings.Contains(all, tc.absent) {
				t.Errorf("objections: %q", all)
			}
		})
	}
}

// A second run with the same prompts may find a warm cache, which a server that does
// not report cached tokens hides.
func TestWarningOfTheSamePrompts(t *testing.T) {
	made := func(url, prompts string, started int64, cached bool, simulated bool) *diff.Run {
		info := ended()
		info.Target.URL, info.Prompts, info.Target.Simulated = url, prompts, simulated
		info.Started, info.Ended = time.Unix(started, 0), time.Unix(started+10, 0)
		records := streamed(7, 20)
		for i := range records {
			records[i].Counts.Cached = trace.Opt[int]{Set: cached}
		}
		return read(t, fmt.Sprint("run", started), info, records, run.Options{})
	}
	first := made("http://a", "p", 0, false, false)
	for name, tc := range map[string]struct {
		second *diff.Run
		warns  bool
	}{
		"again":           {made("http://a", "p", 10, false, false), true},
		"counted":         {made("http://a", "p", 10, true, false), false},
		"another server":  {made("http://b", "p", 10, false, false), false},
		"another salt":    {made("http://a", "q", 10, false, false), false},
		"at once":         {made("http://a", "p", 9, false, false), false},
		"simulated":       {made("http://a", "p", 10, false, true), false},
		"the same record": {first, false},
	} {
		for _, sides := range [][2]*diff.Run{{first, tc.second}, {tc.second, first}} {
			c := diff.Of([]*diff.Run{sides[0]}, []*diff.Run{sides[1]}, diff.Options{Resamples: 20})
			if (len(c.Warnings) == 1) != tc.warns || tc.warns && !strings.Contains(c.Warnings[0], tc.second.Name+" sent the same prompts as "+first.Name) {
				t.Errorf("%s: %q", name, c.Warnings)
			}
		}
	}
}
