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

var about = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a)) })

// Keys and values match the result file of vLLM's benchmark.
func TestSummary(t *testing.T) {
	info := changed(ended(4), func(r *runfile.Run) { r.Settings.MaxConcurrency = 16 })
	keys := summary(t, info, answers(4))
	// Sent from 0.4 to 1500.4 ms, the last done after 103 + 50 + 1 ms more.
	const seconds = 1.654
	want := map[string]any{
		"date": "20260304-040607", "backend": "openai-chat", "endpoint_type": "chat", "model_id": "m",
		"num_prompts": 4.0, "max_concurrency": 16.0, "request_rate": 4 / 1.5, "duration": seconds,
		"completed": 4.0, "failed": 0.0, "total_input_tokens": 4000.0, "total_output_tokens": 12.0,
		"request_throughput": 4 / seconds, "output_throughput": 12 / seconds, "total_token_throughput": 4012 / seconds,
		// Tokens at 100, 120, 150 ms and half a second later: 6 in a second.
		"max_output_tokens_per_s": 6.0, "max_concurrent_requests": 1.0,
		"mean_ttft_ms": 101.5, "median_ttft_ms": 101.5, "std_ttft_ms": math.Sqrt(1.25), "min_ttft_ms": 100.0, "max_ttft_ms": 103.0,
		"p1_ttft_ms": 100.03, "p5_ttft_ms": 100.15, "p10_ttft_ms": 100.3, "p25_ttft_ms": 100.75, "p50_ttft_ms": 101.5,
		"p75_ttft_ms": 102.25, "p90_ttft_ms": 102.7, "p95_ttft_ms": 102.85, "p99_ttft_ms": 102.97, "p99.9_ttft_ms": 102.997,
		"mean_tpot_ms": 25.0, "p99_tpot_ms": 25.0, "mean_itl_ms": 25.0, "median_itl_ms": 25.0, "std_itl_ms": 5.0,
		"mean_e2el_ms": 151.5, "median_e2el_ms": 151.5, "p99_e2el_ms": 152.97,
	}
	if diff := cmp.Diff(want, pick(keys, want), about); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want = map[string]any{
		"verdict": "VALID", "simulated": false, "ended": true, "not_sent": 0.0, "errors": map[string]any{},
		"offered_rate": 4 / 1.5, "achieved_rate": 4 / 1.5, "cached_tokens": 0.0, "explained_tokens": 3 * 512.0,
		"input_estimates": 0.0, "output_estimates": 0.0, "prompts_estimated": 0.0, "prompts_off": 0.0, "answers_shorter": 0.0, "answers_longer": 0.0,
		"mean_ttft_from_schedule_ms": 101.9, "mean_e2el_from_schedule_ms": 151.9,
		"mean_schedule_lag_ms": 0.4, "p99_client_lag_ms": 0.4, "mean_client_queue_time_ms": 0.0,
	}
	own := keys["moontide"].(map[string]any)
	if diff := cmp.Diff(want, pick(own, want), about); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	evidence := own["evidence"].([]any)
	if first := evidence[0].(map[string]any); len(evidence) != 6 || first["level"] != "VALID" || !strings.HasPrefix(first["text"].(string), "client lag p99 0.40 ms") {
		t.Errorf("evidence %v", evidence)
	}
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
