package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"moontide/replay/runfile"
)

// ownSummary is the part of summary.json under moontide.
func ownSummary(t *testing.T, dir string, flags ...string) (own struct {
	Verdict    string
	Thresholds runfile.Thresholds
	Window     *struct {
		From  float64 `json:"from_s"`
		To    float64 `json:"to_s"`
		Ended int
	}
	Cache *struct {
		Requests  int
		Equal     int `json:"equal_requests"`
		BlockSize int `json:"server_block_size"`
		Predicted int `json:"predicted_tokens"`
		Measured  int `json:"measured_tokens"`
		Causes    map[string]struct{ Requests, Tokens int }
	}
	Server *struct {
		Engine   string
		Answers  int
		Failures int
		Queried  *int `json:"queried_tokens"`
		Hit      *int `json:"hit_tokens"`
	}
	Client *struct {
		Samples int
		RSS     int64 `json:"max_rss_bytes"`
	}
}) {
	t.Helper()
	text := must(t, dir, append([]string{"report", "run", "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(text), &struct{ Moontide any }{&own}); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return own
}

// A run records client and server metrics, and a report shows both.
func TestEvidence(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t), t.TempDir()
	r := try(t, dir, "", "replay", sample(t), "--url", url, "--speedup", "20", "--out", "run", "--server-metrics", url, "--server-metrics", url+"/metrics?token=secret")
	if !r.measured() {
		t.Fatalf("exit status %d\n%s%s", r.status, r.out, r.err)
	}
	for _, want := range []string{"Server metrics ", "Engine vllm: ", "Prefix cache, predicted and measured ", "client used ", "token chunks were read in one batch with the next"} {
		if !strings.Contains(unwrapped(r.out), want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
	if again := must(t, dir, "report", "run"); !strings.HasPrefix(r.out, again) {
		t.Errorf("report prints\n%s\nwhere replay printed\n%s", again, r.out)
	}
	var samples []runfile.Sample
	for s, err := range runfile.Samples(filepath.Join(dir, "run")) {
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, s)
	}
	last := samples[len(samples)-1]
	if len(samples) < 3 || samples[0].Server == nil || samples[0].AtMS != 0 || last.Server == nil || last.Done != 100 || last.InFlight != 0 {
		t.Errorf("%d samples, the first %+v, the last %+v", len(samples), samples[0], last)
	}
	own := ownSummary(t, dir)
	// The endpoint was asked twice each time; a probe came before the run.
	if s := own.Server; s.Engine != "vllm" || s.Answers < 2 || s.Failures != 0 || s.Queried == nil || *s.Queried != 2*1329622 || *s.Hit != 2*own.Cache.Measured {
		t.Errorf("%+v of %+v", s, own.Cache)
	}
	if own.Client.Samples != len(samples)-1 || own.Client.RSS < 1<<20 {
		t.Errorf("%+v", own.Client)
	}
	text, err := os.ReadFile(filepath.Join(dir, "run", runfile.RunFile))
	if err != nil || strings.Contains(string(text), "secret") || !strings.Contains(string(text), "token=***") && !strings.Contains(string(text), "?***") {
		t.Errorf("%v, run.json is\n%s", err, text)
	}
}

// A server without metrics does not end a run.
func TestServerMetricsFail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", shortTrace)
	r := try(t, dir, "", "replay", "t.jsonl", "--url", serveFast(t), "--out", "run", "--server-metrics", "http://127.0.0.1:1")
	if !r.measured() || !strings.Contains(unwrapped(r.out), "Failed scrapes 2 e.g. scraping http://127.0.0.1:1/metrics: ") {
		t.Errorf("exit status %d\n%s%s", r.status, r.out, r.err)
	}
	if s := ownSummary(t, dir).Server; s.Failures != 2 || s.Answers != 0 {
		t.Errorf("%+v", s)
	}
}

// The thresholds of a verdict are recorded, and a later report may use others.
func TestThresholdsOfARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", shortTrace)
	r := try(t, dir, "", "replay", "t.jsonl", "--url", serveFast(t), "--out", "run", "--verdict", "lag=1ns,lag-share=1e-9,prompts=0.5,responses=2%,failed=0.3")
	if r.status != exitInvalid || !strings.Contains(r.out, "Verdict: INVALID") {
		t.Fatalf("exit status %d\n%s%s", r.status, r.out, r.err)
	}
	own := ownSummary(t, dir)
	if want := (runfile.Thresholds{MaxLagMS: 1e-6, MaxLagShare: 1e-9, MaxPromptsOff: 0.5, MaxAnswersOff: 0.02, MaxFailed: 0.3}); own.Thresholds != want || own.Verdict != "INVALID" {
		t.Errorf("%+v", own)
	}
	own = ownSummary(t, dir, "--verdict", "lag=1h")
	if want := (runfile.Thresholds{MaxLagMS: 3.6e6, MaxLagShare: 1e-9, MaxPromptsOff: 0.5, MaxAnswersOff: 0.02, MaxFailed: 0.3}); own.Thresholds != want || own.Verdict == "INVALID" {
		t.Errorf("%+v", own)
	}
}

// Every difference between predicted and measured cached tokens has a cause, and
// with an unlimited cache there is no difference. Separate programs computed the
// predictions.
func TestCachePrediction(t *testing.T) {
	t.Parallel()
	t.Run("sample", func(t *testing.T) { checkCachePrediction(t, sample(t), 100, 16, 51_712, "8000", "8000000") })
	t.Run("published", func(t *testing.T) {
		if os.Getenv("MOONTIDE_ALL_TRACES") == "" {
			t.Skip("simulates 12,031 requests: set MOONTIDE_ALL_TRACES")
		}
		checkCachePrediction(t, realTrace(t), 12_031, 16, 54_097_440, "60000")
	})
}

func checkCachePrediction(t *testing.T, path string, rows, blockSize, predicted int, blocks ...string) {
	for _, blocks := range blocks {
		dir := t.TempDir()
		must(t, dir, "simulate", path, "--out", "run", "--num-gpu-blocks", blocks)
		c := ownSummary(t, dir).Cache
		if c.Requests != rows || c.BlockSize != blockSize || c.Predicted != predicted || (c.Equal == c.Requests) != (blocks == "8000000") {
			t.Errorf("%s blocks: %+v", blocks, c)
		}
		requests, tokens := c.Equal, c.Measured
		for cause, d := range c.Causes {
			if cause == "evicted" || cause == "unknown" {
				requests, tokens = requests+d.Requests, tokens+d.Tokens
			}
		}
		if requests != c.Requests || tokens != c.Predicted {
			t.Errorf("%s blocks: %d requests of %d, %d tokens of %d are explained", blocks, requests, c.Requests, tokens, c.Predicted)
		}
	}
}

// The predictions of single requests are available and add up to the report's
// total.
func TestCacheMisses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, "simulate", sample(t), "--out", "run", "--num-gpu-blocks", "8000")
	c := ownSummary(t, dir).Cache
	rows, err := csv.NewReader(strings.NewReader(must(t, dir, "report", "run", "--output", "cache-misses"))).ReadAll()
	if err != nil || len(rows) != 101 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	predicted, measured, equal := 0, 0, 0
	for _, row := range rows[1:] {
		number := func(column int) int {
			n, err := strconv.Atoi(row[column])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		predicted, measured = predicted+number(5), measured+number(6)
		if row[7] == "" {
			equal++
		}
	}
	if predicted != c.Predicted || measured != c.Measured || equal != c.Equal || equal == 100 {
		t.Errorf("predicted %d, measured %d, equal %d, of %+v", predicted, measured, equal, c)
	}
}
