package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	records := sharing()
	each := func(yield func(replay.Record, error) bool) {
		for _, rec := range records {
			if !yield(rec, nil) {
				return
			}
		}
	}
	extent, err := measure.Extent(each, runfile.Window{})
	if err != nil {
		t.Fatal(err)
	}
	window, err := measure.Cut(extent, info.Settings.Window)
	if err != nil {
		t.Fatal(err)
	}
	r, err := measure.Compute(each, measure.Options{
		BlockSize: 512, Window: window, Thresholds: info.Settings.Thresholds, Merges: info.Merges, Samples: serverSaid(t), EachPrediction: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return info, r
}

func TestRunEvidence(t *testing.T) {
	info, r := evidenced(t)
	var text bytes.Buffer
	if err := servingTo(&text, info, r); err != nil {
		t.Fatal(err)
	}
	tracetest.Golden(t, "testdata/run_evidence.txt", text.String())
	if strings.ContainsAny(text.String(), "\x1b\x07\r\t") {
		t.Error("what the server says commands the terminal")
	}
	text.Reset()
	if err := report.Predictions(r.Cache.Prediction).WriteCSV(&text); err != nil {
		t.Fatal(err)
	}
	tracetest.Golden(t, "testdata/run_evidence.csv", text.String())
	if err := report.Predictions(r.Cache.Prediction).WriteCSV(fullDisk{}); err == nil {
		t.Error("a full disk takes all")
	}
}

func TestSummaryOfEvidence(t *testing.T) {
	info, r := evidenced(t)
	text, err := json.Marshal(report.Run{Info: info, Result: r}.Summary()["moontide"])
	if err != nil {
		t.Fatal(err)
	}
	var own map[string]any
	if err := json.Unmarshal(text, &own); err != nil {
		t.Fatal(err)
	}
	none := map[string]any{"requests": 0.0, "tokens": 0.0}
	want := map[string]any{
		"merged_chunks": 2.0, "p99_merged_ms": 0.5, "max_merged_ms": 0.75, "max_first_stamp_error_ms": 0.0,
		"thresholds": map[string]any{"max_lag_ms": 4.0, "max_lag_share": 0.05, "max_prompts_off": 0.01, "max_answers_off": 0.01, "max_failed": 0.05},
		// Sent from 0.4 to 2500.4 ms, the last done 105 + 50 + 1 ms later.
		"window": map[string]any{"warmup_s": 0.5, "cooldown_s": 0.25, "from_s": 0.5004, "to_s": 2.4064, "ended": 4.0},
		"cache": map[string]any{
			"requests": 4.0, "equal_requests": 2.0, "server_block_size": 16.0, "max_server_block_size": nil, "template_tokens": 0.0,
			"shared_tokens": 2048.0, "predicted_tokens": 2048.0, "measured_tokens": 1520.0,
			"causes": map[string]any{
				"unknown": none, "warm": none,
				"not_shared": map[string]any{"requests": 4.0, "tokens": 1952.0, "cause": "no earlier prompt has these tokens"},
				"evicted":    map[string]any{"requests": 2.0, "tokens": 528.0, "cause": "computed before, but no longer cached, or another engine has it"},
			},
		},
		"client": map[string]any{
			"samples": 3.0, "mean_cpu": 2.5 / 3, "max_machine_share": 0.75, "mean_machine_busy": 0.3, "max_machine_busy": 0.9, "gc_pauses": 1.0, "max_gc_pause_ms": 0.2,
			"median_sched_p99_ms": 0.0, "max_sched_p99_ms": 0.1, "max_rss_bytes": float64(1 << 20),
		},
	}
	if diff := cmp.Diff(want, pick(own, want), about); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want = map[string]any{
		"engines": 1.0, "answers": 3.0, "failures": 1.0, "queried_tokens": 4000.0, "hit_tokens": 800.0, "preemptions": 4.0,
		"block_size": 16.0, "capacity_tokens": 32000.0, "mean_kv_use": 0.5, "max_kv_use": 0.5, "max_kv_use_of_fullest": 0.6,
		"mean_running": 2.0, "mean_waiting": 0.5, "mean_hit_rate": nil, "max_hit_rate": nil,
	}
	if diff := cmp.Diff(want, pick(own["server"].(map[string]any), want), about); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
