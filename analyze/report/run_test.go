package report_test

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/tracetest"
)

// hostile is a possible server response: it clears the screen, rings the bell,
// forges a line and is not UTF-8. U+009B starts a command like ESC [, and
// U+202E reverses the text direction.
const hostile = "no\x1b[2J\x07 model\r\nVerdict: VALID\t\u009b31m\u202e\xff <b>\"\\"

// answers returns n requests, one every 0.5 s: 0.4 ms late, TTFT of 100, 101 ..
// ms, gaps of 20 and 30 ms.
func answers(n int) (records []replay.Record) {
	for i := range n {
		due := time.Duration(i) * 500 * time.Millisecond
		sent := due + 400*time.Microsecond
		first := sent + time.Duration(100+i)*time.Millisecond
		last := first + 50*time.Millisecond
		records = append(records, replay.Record{
			Request: trace.Request{InputLength: 1000, OutputLength: 3, HashIDs: []uint64{1, uint64(2 + i)}},
			Row:     i, Due: due, Ready: due,
			Sent: trace.Some(sent), First: trace.Some(first), Last: trace.Some(last), Done: last + time.Millisecond,
			Gaps: []time.Duration{20 * time.Millisecond, 30 * time.Millisecond}, Chunks: 3,
			Counts: replay.Counts{Input: trace.Some(1000), Output: trace.Some(3), Cached: trace.Some(0)},
			Status: 200,
		})
	}
	return records
}

// stamped marks all arrivals except those of the last record as kernel
// timestamps.
func stamped(records []replay.Record) []replay.Record {
	for i := range records {
		records[i].Stamps, records[i].MaxStampError, records[i].ConnectTime = replay.KernelStamps, 50*time.Microsecond, 100*time.Microsecond
	}
	last := &records[len(records)-1]
	last.Stamps, last.MaxStampError = replay.ClientStamps, 0
	return records
}

// uncounted removes the server's counts.
func uncounted(records []replay.Record) []replay.Record {
	for i := range records {
		records[i].Counts = replay.Counts{}
	}
	return records
}

// reasoned adds reasoning to all answers but the first. The last two have no other text.
func reasoned(records []replay.Record) []replay.Record {
	for i := range records[1:] {
		rec := &records[1+i]
		rec.Counts.Reasoning = trace.Some(2)
		if i < len(records)-3 {
			rec.FirstVisible = rec.Last
		} else {
			rec.Counts.Reasoning, rec.ReasoningOnly = trace.Some(3), true
		}
	}
	return records
}

func failure(class replay.Class, message string) replay.Record {
	return replay.Record{
		Request: trace.Request{InputLength: 1000, OutputLength: 3, HashIDs: []uint64{1}},
		Sent:    trace.Some(time.Millisecond), Done: time.Second, Class: class, Error: message,
	}
}

func measured(t *testing.T, info runfile.Run, records []replay.Record) *measure.Result {
	t.Helper()
	r, err := measure.Compute(each(records), measure.Options{BlockSize: 512, ReadDelay: info.ReadDelay})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ended returns a completed run of n rows.
func ended(n int) runfile.Run {
	started := time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("", 3600))
	return runfile.Run{Outcome: runfile.Outcome{
		Started: started, Ended: started.Add(time.Minute), Rows: n, Sent: n,
		Target: runfile.Target{Model: "m", Endpoint: "chat"},
	}}
}

func changed(info runfile.Run, change func(*runfile.Run)) runfile.Run {
	change(&info)
	return info
}

var servingRuns = []struct {
	name    string
	info    runfile.Run
	records []replay.Record
}{
	{"complete", ended(4), answers(4)},
	{"failures", changed(ended(9), func(r *runfile.Run) {
		r.Sent, r.NotSent, r.Settings.MaxConcurrency = 7, 2, 16
		r.Notes = []string{"the block size is assumed", hostile}
	}), append(uncounted(answers(3)),
		failure(replay.Server, hostile), failure(replay.Server, "zzz"), failure(replay.Timeout, "no end after 1s"), failure(replay.Empty, ""))},
	{"killed", changed(ended(9), func(r *runfile.Run) { r.Ended, r.Sent = time.Time{}, 0 }), answers(2)},
	{"stopped", changed(ended(9), func(r *runfile.Run) {
		r.Sent, r.NotSent, r.Stopped, r.Failure, r.Target.Simulated = 2, 7, true, hostile, true
	}), answers(2)},
	{"stamped", changed(ended(3), func(r *runfile.Run) {
		r.ReadDelay = runfile.ReadDelay{Reads: 12, MedianMS: 0.02, P99MS: 2.5, MaxMS: 7}
	}), stamped(answers(3))},
	{"reasoning", ended(5), reasoned(answers(5))},
	{"nothing", ended(2), []replay.Record{{Class: replay.Connect, Error: "refused", Done: 5}, {Class: replay.Connect, Error: "refused", Done: 9}}},
}

func servingText(t *testing.T, info runfile.Run, records []replay.Record) string {
	t.Helper()
	return written(t, report.Runs{{Info: info, Result: measured(t, info, records)}}.Document().WriteText)
}

func TestRunText(t *testing.T) {
	for _, test := range servingRuns {
		t.Run(test.name, func(t *testing.T) {
			tracetest.Golden(t, "testdata/run_"+test.name+".txt", servingText(t, test.info, test.records))
		})
	}
}

func summary(t *testing.T, info runfile.Run, records []replay.Record) map[string]any {
	t.Helper()
	text, err := json.Marshal(report.Run{Info: info, Result: measured(t, info, records)}.Summary())
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return keys
}

func pick(keys map[string]any, names map[string]any) map[string]any {
	picked := map[string]any{}
	for name := range names {
		if value, ok := keys[name]; ok {
			picked[name] = value
		}
	}
	return picked
}

// Keys and values match the result file of vLLM's benchmark. Requests are sent from 0.4 to
// 1500.4 ms, the last one done after 103 + 50 + 1 ms more. Tokens arrive at 100, 120, 150 ms
// and half a second later: 6 in a second.
func TestSummary(t *testing.T) {
	info := changed(ended(4), func(r *runfile.Run) { r.Settings.MaxConcurrency = 16 })
	tracetest.Golden(t, "testdata/run_complete.json", written(t, report.Runs{{Info: info, Result: measured(t, info, answers(4))}}.JSON))
}

// Values that were not measured are null under the same keys, never 0 and never
// omitted.
func TestSummaryOfNothing(t *testing.T) {
	full := summary(t, ended(4), answers(4))
	info := changed(ended(2), func(r *runfile.Run) { r.Ended = time.Time{} })
	refused := replay.Record{Class: replay.Connect, Error: "refused", Done: 5}
	bare := summary(t, info, []replay.Record{refused, refused})
	known := []string{
		"date", "backend", "endpoint_type", "model_id", "num_prompts", "duration", "completed", "failed",
		"total_input_tokens", "total_output_tokens", "max_output_tokens_per_s", "max_concurrent_requests", "moontide",
		"verdict", "evidence", "notes", "simulated", "ended", "errors", "input_estimates", "output_estimates", "output_contradicted", "prompts_estimated", "thresholds",
	}
	for _, at := range []struct{ full, bare map[string]any }{{full, bare}, {full["moontide"].(map[string]any), bare["moontide"].(map[string]any)}} {
		if len(at.bare) != len(at.full) {
			t.Errorf("%d keys, of a full run %d", len(at.bare), len(at.full))
		}
		for key := range at.full {
			value, there := at.bare[key]
			// Explained tokens are 0: nothing was sent that could share any.
			if !there || key != "explained_tokens" && slices.Contains(known, key) != (value != nil) && at.full[key] != nil {
				t.Errorf("%s is %v, there: %v", key, value, there)
			}
		}
	}
	want := map[string]any{"ended": false, "errors": map[string]any{"connect": 2.0}, "verdict": "INVALID"}
	if diff := cmp.Diff(want, pick(bare["moontide"].(map[string]any), want)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// If the server did not count tokens, the lengths are unknown and no mismatch
// is reported.
func TestSummaryWithoutCounts(t *testing.T) {
	own := summary(t, ended(2), uncounted(answers(2)))["moontide"].(map[string]any)
	want := map[string]any{
		"prompts_off": nil, "answers_shorter": nil, "answers_longer": nil, "cached_tokens": nil, "explained_tokens": 512.0,
		"input_estimates": 2.0, "output_estimates": 2.0, "verdict": "SUSPECT",
	}
	if diff := cmp.Diff(want, pick(own, want)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Names that are not UTF-8 still give valid JSON, and numbers have no exponent.
func TestSummaryIsValidJSON(t *testing.T) {
	info := changed(ended(1), func(r *runfile.Run) { r.Target.Model, r.Target.Endpoint = hostile, hostile })
	records := append(answers(1), failure(replay.Class(hostile), hostile))
	slow := answers(1)[0]
	slow.Last = trace.Some(math.MaxInt64 * time.Nanosecond)
	path := t.TempDir() + "/summary.json"
	if err := runfile.WriteJSON(path, report.Run{Info: info, Result: measured(t, info, append(records, slow))}.Summary()); err != nil {
		t.Fatal(err)
	}
	bytes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(bytes)
	if !utf8.ValidString(text) || !json.Valid(bytes) {
		t.Fatalf("not JSON: %s", text)
	}
	if found := regexp.MustCompile(`": [0-9.-]+[eE]`).FindString(text); found != "" {
		t.Errorf("a number with an exponent: %s", found)
	}
	if want := `"model_id": "no\u001b[2J`; !strings.Contains(text, want) {
		t.Errorf("%s is not in %s", want, text)
	}
}

// TTFVT and reasoning tokens are shown where an answer began with reasoning, in
// every form but that of vLLM, and nowhere else unless asked for.
func TestReasoningIsShownWhereThereIsSome(t *testing.T) {
	plain := report.Run{Name: "plain", Info: ended(5), Result: inDetail(t, answers(5))}
	reasoning := report.Run{Name: "reasoning", Info: ended(5), Result: inDetail(t, reasoned(answers(5)))}
	asked := plain
	asked.View.Latencies = []measure.Latency{measure.TTFVT}
	const note = "2 responses have no visible text, because they ended during reasoning"
	for name, test := range map[string]struct {
		runs                report.Runs
		ttfvt, tokens, note bool
	}{
		"without":     {report.Runs{plain}, false, false, false},
		"with":        {report.Runs{reasoning}, true, true, true},
		"one of two":  {report.Runs{plain, reasoning}, true, true, true},
		"asked for":   {report.Runs{asked}, true, false, false},
		"two without": {report.Runs{plain, plain}, false, false, false},
	} {
		d := test.runs.Document()
		text := strings.Join(strings.Fields(written(t, d.WriteText)), " ")
		if shown := strings.Contains(strings.ReplaceAll(text, "TTFVT excludes them", ""), "TTFVT"); shown != test.ttfvt {
			t.Errorf("%s: TTFVT is shown: %v", name, shown)
		}
		if strings.Contains(text, "Mean reasoning length") != test.tokens || strings.Contains(text, note) != test.note {
			t.Errorf("%s: reasoning in:\n%s", name, text)
		}
		csv := written(t, d.WriteCSV)
		if strings.Contains(csv, "p99_ttfvt_ms") != test.ttfvt || strings.Contains(csv, "mean_reasoning_tokens") != test.tokens {
			t.Errorf("%s: CSV:\n%s", name, csv)
		}
	}
	if text := written(t, report.Runs{reasoning}.Block(report.VLLM).WriteText); strings.Contains(text, "TTFVT (ms)") || !strings.Contains(text, note) {
		t.Errorf("vLLM's block:\n%s", text)
	}
}

// The JSON always has TTFVT, so that its keys do not depend on the server.
func TestReasoningInJSON(t *testing.T) {
	for name, want := range map[string]map[string]any{
		"plain":     {"mean_ttfvt_ms": 102.0, "reasoning_answers": 0.0, "reasoning_only": nil, "mean_reasoning_tokens": nil},
		"reasoning": {"mean_ttfvt_ms": 403.0 / 3, "reasoning_answers": 4.0, "reasoning_only": 2.0, "mean_reasoning_tokens": 2.5},
	} {
		records := answers(5) // TTFT of 100 to 104 ms
		if name == "reasoning" {
			records = reasoned(records) // TTFVT of 100, 151 and 152 ms
		}
		own := summary(t, ended(5), records)["moontide"].(map[string]any)
		for key, value := range want {
			if got, there := own[key]; !there || got != value {
				t.Errorf("%s: %s is %v, want %v", name, key, got, value)
			}
		}
	}
}

// Sessions, turns and abandoned requests are in the text; runs without any have no
// word of them.
func TestSessionsAreReported(t *testing.T) {
	t.Parallel()
	records := answers(5)
	for i := range records {
		records[i].SessionID = "s"
	}
	records[4].Class, records[4].SessionID = replay.Abandoned, "left"
	runs := report.Runs{{Info: ended(5), Result: inDetail(t, records)}}
	text := written(t, runs.Document().WriteText)
	for _, want := range []string{"\nSessions\n", "\nBy turn of the session\n", "\nBy context length\n", "\nAbandoned requests\n", "Completed sessions", "Still running"} {
		if found := strings.Contains(text, want); found != (want != "Still running") {
			t.Errorf("%q is in the text: %v", want, found)
		}
	}
	own := runs[0].Summary()["moontide"].(map[string]any)
	if own["sessions"].(map[string]any)["completed_sessions"] == nil || own["abandoned"].(map[string]any)["requests"] != 1 {
		t.Errorf("%v, %v", own["sessions"], own["abandoned"])
	}
	plain := servingText(t, ended(5), answers(5))
	if strings.Contains(plain, "Sessions") || strings.Contains(plain, "bandoned") {
		t.Error("a run without sessions has some")
	}
}

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
