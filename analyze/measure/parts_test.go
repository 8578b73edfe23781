package measure_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"moontide/analyze/measure"
	"moontide/replay"
	merge "moontide/replay/parts"
	"moontide/replay/runfile"
)

type recording = merge.Part

// divided returns the parts of one run: records whose clock is wrong by skew and,
// after a second, wrong by drift more.
func divided(records []replay.Record, of int, skew, drift func(part int) time.Duration) []recording {
	var parts []recording
	for i := range of {
		var own []replay.Record
		for k, rec := range records {
			if k%of == i {
				own = append(own, rec)
			}
		}
		clock := runfile.Clock{Reference: runfile.ClockOfPart1}
		started := firstStart.Add(-skew(i))
		offset := func(after time.Duration) runfile.ClockOffset {
			return runfile.ClockOffset{At: started.Add(after), BoundMS: 0.05, OffsetMS: (skew(i) + time.Duration(float64(drift(i))*after.Seconds())).Seconds() * 1e3}
		}
		clock.Before, clock.After = offset(0), offset(time.Hour)
		for k := range own { // as that clock shows them
			own[k] = byClock(own[k], drift(i))
		}
		parts = append(parts, recording{
			Name: fmt.Sprint("part-", i+1),
			Run: runfile.Run{Outcome: runfile.Outcome{
				Version: "v1", Started: started, Ended: started.Add(time.Hour), Rows: len(own), Sent: len(own), Schedule: "s",
				Part: runfile.Part{RunID: "r", Number: i + 1, Of: of, RunRows: len(records), Start: firstStart, Clock: clock},
			}},
			Records: each(own),
			Samples: func(func(runfile.Sample, error) bool) {},
		})
	}
	return parts
}

// byClock is a record as a clock has it that loses drift each second: what drift has
// added when a request is sent is taken from all of its times.
func byClock(rec replay.Record, drift time.Duration) replay.Record {
	at := rec.Done
	if rec.Sent.Set {
		at = rec.Sent.Value
	}
	return moved(rec, time.Duration(float64(drift)*at.Seconds()))
}

func none(int) time.Duration { return 0 }

// mergedRun merges parts and judges each by itself.
func mergedRun(t interface{ Fatal(...any) }, parts []recording, known *runfile.Parts, opts measure.Options) *measure.Result {
	merged, err := merge.Merge(parts, known)
	if err != nil {
		t.Fatal(err)
	}
	for i := range merged.Parts {
		info := &merged.Parts[i].Run
		opts.PartOptions = append(opts.PartOptions, measure.Options{Sent: info.Sent, ReadDelay: info.ReadDelay})
	}
	opts.Rows, opts.Sent, opts.Parts = merged.Run.Rows, merged.Run.Sent, merged
	r, err := measure.Compute(merged.Records, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The parts of a run, with any clocks, have all metrics of the same run of one process,
// including predicted cache hits.
func TestPartsAreOneRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := anyRun(rt)
		skews := rapid.SliceOfN(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)), 4, 4).Draw(rt, "skews")
		skew := func(part int) time.Duration {
			if part == 0 {
				return 0
			}
			return time.Duration(skews[part]) / 1e6 * 1e6 // in milliseconds, which floats hold exactly
		}
		opts := measure.Options{BlockSize: blockSize, EachPrediction: true, Objectives: []measure.Objective{{Latency: measure.TTFT, LimitMS: 1000}}}
		got := mergedRun(rt, divided(records, rapid.IntRange(1, 4).Draw(rt, "parts"), skew, none), nil, opts)
		opts.Rows, opts.Sent = len(records), len(records)
		want := compute(t, opts, records...)
		if len(got.PartFaults) > 0 {
			rt.Errorf("faults %v", got.PartFaults)
		}
		got.Parts, got.PartFaults, got.Verdict, want.Verdict = nil, nil, measure.Verdict{}, measure.Verdict{}
		wantSame(rt, got, want)
	})
}

// Clocks that are wrong by seconds and drift change neither TTFT nor the order of
// requests.
func TestSkewedClocksAreCorrected(t *testing.T) {
	records := sound(200)
	for i := range records {
		records[i] = moved(records[i], time.Duration(-i)*40*time.Millisecond)
	}
	skew := func(part int) time.Duration {
		return []time.Duration{0, 250 * time.Millisecond, -3 * time.Second, 0}[part]
	}
	drift := func(part int) time.Duration {
		return []time.Duration{0, 0, 0, 100 * time.Microsecond}[part]
	}
	parts := divided(records, 4, skew, drift)
	merged, err := merge.Merge(parts, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for rec, err := range merged.Records {
		if err != nil {
			t.Fatal(err)
		}
		if off := rec.Sent.Value - records[i].Sent.Value; rec.Row != i || off.Abs() > time.Microsecond || rec.First.Value-rec.Sent.Value != records[i].First.Value-records[i].Sent.Value {
			t.Fatalf("record %d is of row %d, off by %v", i, rec.Row, off)
		}
		i++
	}
	if r := mergedRun(t, divided(records, 4, skew, drift), nil, measure.Options{}); i != 200 || r.Verdict.Level != measure.Valid {
		t.Errorf("%d records, %+v", i, r.Verdict)
	}
}

// What is wrong with a part is wrong with the run, by name.
func TestFaultsOfParts(t *testing.T) {
	late := func(part recording, ms float64) recording {
		var records []replay.Record
		for rec := range part.Records {
			records = append(records, shifted(rec, ms))
		}
		part.Records = each(records)
		return part
	}
	for _, test := range []struct {
		name  string
		edit  func(parts []recording) []recording
		known *runfile.Parts
		level measure.Level
		want  string // "" is none
	}{
		{"sound", func(p []recording) []recording { return p }, nil, measure.Valid, "4 of 4 parts are VALID on their own"},
		{"all late", func(p []recording) []recording {
			for i := range p {
				p[i] = late(p[i], 3)
			}
			return p
		}, nil, measure.Suspect, "part 1 of 4: client lag p99 3.00 ms"},
		{"one late", func(p []recording) []recording { p[2] = late(p[2], 12.46); return p }, nil, measure.Invalid, "part 3 of 4: client lag p99 12.46 ms"},
		{"lost", func(p []recording) []recording { return p[:3] }, nil, measure.Invalid, "part 4 of 4 is missing: add its folder"},
		{"lost, as the leader knows", func(p []recording) []recording { return p[1:] }, &runfile.Parts{RunID: "r", Of: 4, Parts: []runfile.PartState{{Number: 1, Host: "b", State: runfile.PartLost, Reason: "no word for 10 s"}, {}, {}, {}}}, measure.Invalid, "part 1 of 4 is missing (b): lost, no word for 10 s"},
		{"its end not written", func(p []recording) []recording { return p }, &runfile.Parts{RunID: "r", Of: 4}, measure.Invalid, "the end of the run is not in parts.json"},
		{"moved by 120 s", func(p []recording) []recording {
			p[1].Run.Started = p[1].Run.Started.Add(2 * time.Minute)
			return p
		}, nil, measure.Invalid, "part 2 of 4 started 120000.00 ms from the agreed start"},
		{"started late", func(p []recording) []recording {
			for i := range p {
				p[i].Run.Started = p[i].Run.Started.Add(time.Duration(248+58*i) * time.Millisecond)
			}
			return p
		}, nil, measure.Invalid, "part 4 of 4 started 422.00 ms from the agreed start"},
		{"killed", func(p []recording) []recording { p[3].Run.Ended, p[3].Run.Sent = time.Time{}, 10; return p }, nil, measure.Invalid, "part 4 of 4 did not end (10 of 25 requests were sent)"},
		{"failed", func(p []recording) []recording { p[3].Run.Failure = "disk full"; return p }, nil, measure.Invalid, "part 4 of 4 failed (25 of 25 requests were sent): disk full"},
		{"one was stopped", func(p []recording) []recording { p[0].Run.Stopped = true; return p }, nil, measure.Invalid, "part 1 of 4 was stopped early"},
		{"one twice", func(p []recording) []recording { return append(p, p[1]) }, nil, measure.Invalid, "part-2 and part-2 are both part 2"},
		{"of another run", func(p []recording) []recording { p[1].Run.Part.RunID = "q"; return p }, nil, measure.Invalid, "part-2 does not belong to the same run as part-1"},
		{"of another schedule", func(p []recording) []recording { p[1].Run.Schedule = "q"; return p }, nil, measure.Invalid, "differ in their schedules (SHA-256): s, q"},
		{"other models", func(p []recording) []recording { p[1].Run.Target.Model = "m"; return p }, nil, measure.Invalid, "differ in their models: , m"},
		{"clock not compared", func(p []recording) []recording { p[1].Run.Part.Clock = runfile.Clock{}; return p }, nil, measure.Suspect, "the clocks of part 2 of 4 were not compared"},
		{"clock unsure", func(p []recording) []recording { p[1].Run.Part.Clock.After.BoundMS = 4; return p }, nil, measure.Suspect, "clocks of the parts are known within 4 ms, the worst being that of part 2 of 4"},
		{"clock unknown", func(p []recording) []recording { p[1].Run.Part.Clock.After.BoundMS = 40; return p }, nil, measure.Invalid, "clocks of the parts are known within 40 ms"},
		{"clock stepped", func(p []recording) []recording { p[1].Run.Part.Clock.After.OffsetMS += 10_000; return p }, nil, measure.Suspect, "part 2 of 4: its clock was changed during the run"},
		{"the same rows in two parts", func(p []recording) []recording {
			p[2].Records = p[1].Records
			return p
		}, nil, measure.Invalid, "records are duplicates"},
	} {
		r := mergedRun(t, test.edit(divided(sound(100), 4, none, none)), test.known, measure.Options{})
		if !says(r.Verdict, test.level, test.want) || r.Verdict.Level != test.level {
			t.Errorf("%s: %v, want %v with %q\n%+v", test.name, r.Verdict.Level, test.level, test.want, r.Verdict.Evidence)
		}
	}
}

// moved is a record as a machine would have it that began so much later.
func moved(rec replay.Record, later time.Duration) replay.Record {
	rec.Due, rec.Ready, rec.Done = rec.Due-later, rec.Ready-later, rec.Done-later
	for _, at := range []*replay.Instant{&rec.Sent, &rec.First, &rec.FirstVisible, &rec.Last} {
		if at.Set {
			at.Value -= later
		}
	}
	return rec
}

var firstStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Each part keeps its own targets and limits. Samples of all clients are merged; samples
// of the server come from one part.
func TestMergedParts(t *testing.T) {
	for _, test := range []struct {
		urls    []string // several URLs are separated by spaces
		targets int
	}{{[]string{"u", "u"}, 1}, {[]string{"u v", "w"}, 2}} {
		parts := divided([]replay.Record{answered(0, 100), answered(0, 100)}, 2, none, none)
		for i := range parts {
			p, rec := &parts[i], answered(0, 100)
			p.Run.Target.URL, rec.Target = test.urls[i], len(strings.Fields(test.urls[i]))-1
			p.Run.Settings.MaxConcurrency, p.Run.NotSent = 16, 1
			p.Run.Merges = runfile.Merges{Chunks: 10, Merged: 1, P99MS: float64(i)}
			p.Records = each([]replay.Record{rec})
			p.Samples = func(yield func(runfile.Sample, error) bool) {
				_ = yield(runfile.Sample{AtMS: 1000, SpanMS: 1000, CPU: float64(1 + 2*i), Server: &runfile.ServerFigures{Engine: "vllm"}}, nil)
			}
		}
		merged, err := merge.Merge(parts, nil)
		if err != nil {
			t.Fatal(err)
		}
		targets := map[int]bool{}
		for rec := range merged.Records {
			targets[rec.Target] = true
		}
		if len(targets) != test.targets {
			t.Errorf("targets %v", targets)
		}
		if r := merged.Run; r.MaxConcurrency() != 16 || r.NotSent != 2 || r.Merges != (runfile.Merges{Chunks: 20, Merged: 2, P99MS: 1}) {
			t.Errorf("%+v", r)
		}
		o, err := measure.SummarizeSamples(merged.Samples, measure.Span{})
		if err != nil || o.Client.Samples != 2 || o.Client.CPU != 2 || o.Server.Scrapes != 1 {
			t.Errorf("%+v, %v", o, err)
		}
	}
}

// The offset of a part is added to every time of its records, so it is bounded; runs that
// are no parts are not merged.
func TestPartsThatAreNotMerged(t *testing.T) {
	far, alone := divided(nil, 2, none, none), divided(nil, 2, none, none)
	far[1].Run.Started = far[1].Run.Started.AddDate(300, 0, 0)
	alone[0].Run.Part = runfile.Part{}
	for want, parts := range map[string][]recording{"not parts of one run": far, "part-1 is not a part of a run": alone} {
		if merged, err := merge.Merge(parts, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %+v", err, merged)
		}
	}
}
