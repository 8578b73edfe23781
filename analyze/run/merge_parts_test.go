package run_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
)

// apart are the records of a run as a machine would have them that began so much
// later.
func apart(records []replay.Record, later time.Duration) []replay.Record {
	moved := make([]replay.Record, len(records))
	for i, rec := range records {
		rec.Due, rec.Ready, rec.Done = rec.Due-later, rec.Ready-later, rec.Done-later
		for _, at := range []*replay.Instant{&rec.Sent, &rec.First, &rec.FirstVisible, &rec.Last} {
			if at.Set {
				at.Value -= later
			}
		}
		rec.HashIDs = append([]uint64(nil), rec.HashIDs...)
		if records[i].HashIDs != nil && rec.HashIDs == nil {
			rec.HashIDs = []uint64{}
		}
		moved[i] = rec
	}
	return moved
}

var firstStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func part(records []replay.Record, later time.Duration) run.Part {
	return run.Part{
		Run:     runfile.Run{Started: firstStart.Add(later), Ended: firstStart.Add(time.Hour), Rows: len(records), Sent: len(records)},
		Records: each(apart(records, later)),
		Samples: func(func(runfile.Sample, error) bool) {},
	}
}

// A test driven by several machines has the same metrics as one driven by a single
// machine.
func TestMergedRunsAreOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := anyRun(rt)
		machines := make([][]replay.Record, rapid.IntRange(1, 4).Draw(rt, "machines"))
		for _, rec := range records {
			i := rapid.IntRange(0, len(machines)-1).Draw(rt, "machine")
			machines[i] = append(machines[i], rec)
		}
		var parts []run.Part
		for i, machine := range machines {
			later := time.Duration(0)
			if i > 0 { // the first is the first to start
				later = time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(rt, "later"))
			}
			parts = append(parts, part(machine, later))
		}
		opts := run.Options{BlockSize: blockSize, Objectives: []run.Objective{{Latency: run.TTFT, LimitMS: 1000}}}
		merged, err := run.Merge(parts, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := run.Compute(merged.Records, opts)
		if err != nil {
			rt.Fatal(err)
		}
		want := compute(t, opts, records...)
		// Of requests that were sent at the same time, the order of their rows
		// says which had the prefix first.
		got.Cache.Prediction, want.Cache.Prediction = run.CachePrediction{}, run.CachePrediction{}
		got.Verdict, want.Verdict = run.Verdict{}, run.Verdict{}
		wantSame(rt, got, want)
		if merged.Run.Rows != len(records) || !merged.Run.Started.Equal(firstStart) {
			rt.Errorf("%+v", merged.Run)
		}
	})
}

// Prompts of other salts share nothing, and rows, targets and limits are told
// apart.
func TestMergedRunsAreToldApart(t *testing.T) {
	rec := answered(0, 100)
	rec.Request = trace.Request{InputLength: 20, OutputLength: 1, HashIDs: []uint64{1, 2}}
	for _, test := range []struct {
		salts, urls []string // several URLs are separated by spaces
		explained   int
		targets     int
	}{
		{[]string{"a", "a"}, []string{"u", "u"}, 20, 1},
		{[]string{"a", "b"}, []string{"u", "u"}, 0, 1},
		{[]string{"a", "a"}, []string{"u v", "w"}, 20, 2},
	} {
		var parts []run.Part
		for i, salt := range test.salts {
			last := rec
			last.Target = len(strings.Fields(test.urls[i])) - 1
			p := part([]replay.Record{last}, 0)
			p.Run.Salt, p.Run.Target.URL = salt, test.urls[i]
			p.Run.Limits.MaxConcurrency, p.Run.Version = 8, salt
			p.Run.NotSent, p.Run.Merges = 1, runfile.Merges{Chunks: 10, Merged: 1, P99MS: float64(i)}
			parts = append(parts, p)
		}
		merged, err := run.Merge(parts, nil)
		if err != nil {
			t.Fatal(err)
		}
		rows, targets := map[int]bool{}, map[int]bool{}
		var records []replay.Record
		for rec := range merged.Records {
			rows[rec.Row], targets[rec.Target] = true, true
			records = append(records, rec)
		}
		if got := compute(t, run.Options{BlockSize: 10}, records...).Cache.MaxHits; got != trace.Some(test.explained) || len(rows) != 2 || len(targets) != test.targets {
			t.Errorf("%v: %v explained, rows %v, targets %v", test.salts, got, rows, targets)
		}
		run := merged.Run
		if run.Limits.MaxConcurrency != 16 || run.NotSent != 2 || run.Merges != (runfile.Merges{Chunks: 20, Merged: 2, P99MS: 1}) {
			t.Errorf("%+v", run)
		}
	}
}

// The samples of all clients are merged; server samples come from one run.
func TestMergedSamples(t *testing.T) {
	sampled := func(at, cpu float64) run.Part {
		p := part(nil, 0)
		p.Samples = func(yield func(runfile.Sample, error) bool) {
			_ = yield(runfile.Sample{AtMS: at, SpanMS: 1000, CPU: cpu, Server: &runfile.ServerFigures{Engine: "vllm"}}, nil)
		}
		return p
	}
	merged, err := run.Merge([]run.Part{sampled(1000, 1), sampled(1000, 3)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := run.SummarizeSamples(merged.Samples, run.Span{})
	if err != nil || o.Client.Samples != 2 || o.Client.CPU != 2 || o.Server.Scrapes != 1 {
		t.Errorf("%+v, %v", o, err)
	}
}

// The offset of a part is added to every time of its records, so it is bounded.
func TestPartsYearsApartAreNotMerged(t *testing.T) {
	far := part(nil, 0)
	far.Run.Started = far.Run.Started.AddDate(300, 0, 0)
	if merged, err := run.Merge([]run.Part{part(nil, 0), far}, nil); err == nil || !strings.Contains(err.Error(), "not parts of one test") {
		t.Errorf("%v, %+v", err, merged.Run)
	}
}
