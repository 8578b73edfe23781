package run_test

import (
	"strings"
	"testing"
	"time"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/runfile"
)

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

// Targets and limits of the parts are told apart, samples of all clients are merged, and
// those of the server come from one part.
func TestMergedParts(t *testing.T) {
	for _, test := range []struct {
		urls    []string // several URLs are separated by spaces
		targets int
	}{{[]string{"u", "u"}, 1}, {[]string{"u v", "w"}, 2}} {
		parts := divided([]replay.Record{answered(0, 100), answered(0, 100)}, 2, none, none)
		for i := range parts {
			p, rec := &parts[i], answered(0, 100)
			p.Run.Target.URL, rec.Target = test.urls[i], len(strings.Fields(test.urls[i]))-1
			p.Run.Limits.MaxConcurrency, p.Run.NotSent = 8, 1
			p.Run.Merges = runfile.Merges{Chunks: 10, Merged: 1, P99MS: float64(i)}
			p.Records = each([]replay.Record{rec})
			p.Samples = func(yield func(runfile.Sample, error) bool) {
				_ = yield(runfile.Sample{AtMS: 1000, SpanMS: 1000, CPU: float64(1 + 2*i), Server: &runfile.ServerFigures{Engine: "vllm"}}, nil)
			}
		}
		merged, err := run.Merge(parts, nil)
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
		if r := merged.Run; r.Limits.MaxConcurrency != 16 || r.NotSent != 2 || r.Merges != (runfile.Merges{Chunks: 20, Merged: 2, P99MS: 1}) {
			t.Errorf("%+v", r)
		}
		o, err := run.SummarizeSamples(merged.Samples, run.Span{})
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
	for want, parts := range map[string][]run.Part{"not parts of one run": far, "part-1 is not a part of a run": alone} {
		if merged, err := run.Merge(parts, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %+v", err, merged)
		}
	}
}
