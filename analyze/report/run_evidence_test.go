package report_test

import (
	"strings"
	"testing"
	"time"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/tracetest"
)

// serverSaid returns a server's metrics in a run of six seconds.
func serverSaid(t *testing.T) measure.SampleSummary {
	t.Helper()
	figures := func(use, running, queried, hit float64) *runfile.ServerFigures {
		return &runfile.ServerFigures{
			Engine: hostile, Engines: 1, KVUse: &use, KVUseMax: new(use + 0.1), Running: &running, Waiting: new(0.5),
			QueriedTokens: &queried, HitTokens: &hit, Preemptions: new(running), BlockSize: new(16.0), CapacityTokens: new(32000.0),
		}
	}
	o, err := measure.SummarizeSamples(func(yield func(runfile.Sample, error) bool) {
		for i, s := range []runfile.Sample{
			{Server: figures(0, 0, 0, 0)},
			{SpanMS: 1000, CPU: 0.5, MachineShare: 0.25, GCPauses: 1, GCPauseMaxMS: 0.2, SchedP99MS: 0.1, RSSBytes: 1 << 20, Server: figures(0.5, 2, 1000, 100)},
			{SpanMS: 1000, CPU: 1.5, MachineShare: 0.75, MachineBusy: 0.9, ServerError: hostile},
			{SpanMS: 1000, CPU: 0.5, MachineShare: 0.25, Server: figures(0.7, 4, 4000, 800)},
		} {
			s.AtMS = float64(1000 * i)
			yield(s, nil)
		}
	}, measure.Span{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// sharing returns answers whose cached tokens mostly differ from the
// prediction.
func sharing() []replay.Record {
	records := answers(6)
	for i, cached := range []int{0, 512, 0, 512, 496, 784} {
		records[i].HashIDs = []uint64{1, uint64(2 + i)}
		records[i].Counts.Cached = trace.Some(cached)
		records[i].Stamps = replay.KernelStamps
	}
	records[2].Target = 1
	records[5].FirstStampError = 300 * time.Microsecond
	return records
}

func evidenced(t *testing.T) (runfile.Run, *measure.Result) {
	t.Helper()
	info := changed(ended(6), func(r *runfile.Run) {
		r.Settings.Window = runfile.Window{WarmupSeconds: 0.5, CooldownSeconds: 0.25}
		r.Settings.Thresholds = runfile.Thresholds{MaxLagMS: 4}
		r.Merges = runfile.Merges{Chunks: 18, Merged: 2, P99MS: 0.5, MaxMS: 0.75}
	})
	records := each(sharing())
	extent, err := measure.Extent(records, runfile.Window{})
	if err != nil {
		t.Fatal(err)
	}
	window, err := measure.Cut(extent, info.Settings.Window)
	if err != nil {
		t.Fatal(err)
	}
	r, err := measure.Compute(records, measure.Options{
		BlockSize: 512, Window: window, Thresholds: info.Settings.Thresholds, Merges: info.Merges, Samples: serverSaid(t), EachPrediction: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return info, r
}

func TestRunEvidence(t *testing.T) {
	info, r := evidenced(t)
	text := written(t, report.Runs{{Info: info, Result: r}}.Document().WriteText)
	tracetest.Golden(t, "testdata/run_evidence.txt", text)
	if strings.ContainsAny(text, "\x1b\x07\r\t") {
		t.Error("what the server says commands the terminal")
	}
	tracetest.Golden(t, "testdata/run_evidence.csv", written(t, report.Predictions(r.Cache.Prediction).WriteCSV))
	if err := report.Predictions(r.Cache.Prediction).WriteCSV(fullDisk{}); err == nil {
		t.Error("a full disk takes all")
	}
}

// Requests were sent from 0.4 to 2500.4 ms, the last one done 105 + 50 + 1 ms later.
func TestSummaryOfEvidence(t *testing.T) {
	info, r := evidenced(t)
	tracetest.Golden(t, "testdata/run_evidence.json", written(t, report.Runs{{Info: info, Result: r}}.JSON))
}
