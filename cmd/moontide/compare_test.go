package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// twoRuns simulates the sample on a server and on a slower one.
func twoRuns(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	must(t, dir, "simulate", sample(t), "--out", "fast")
	must(t, dir, "simulate", sample(t), "--out", "slow", "--step-base", "20ms")
	return dir
}

// spoil copies a run and changes the prompt lengths to wrong ones.
func spoil(t *testing.T, dir, run, copied string) {
	t.Helper()
	mkdir(t, dir, copied)
	for _, name := range []string{"run.json", "requests.jsonl"} {
		text := read(t, filepath.Join(dir, run, name))
		write(t, filepath.Join(dir, copied), name, strings.ReplaceAll(string(text), `"input_tokens": `, `"input_tokens": 9`))
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	dir := twoRuns(t)
	out := must(t, dir, "compare", "fast", "slow")
	for _, want := range []string{"A: fast; B: slow", "flags.step-base", "completed on both sides", "worse"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if other := must(t, dir, "compare", "slow", "fast"); other == out {
		t.Error("the sides do not matter")
	}
	if again := must(t, dir, "compare", "fast", "slow"); again != out {
		t.Errorf("the same command prints\n%s\nand\n%s", out, again)
	}
	cmd := moontide(dir, "compare", "fast", "slow")
	cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	if one, err := cmd.Output(); err != nil || string(one) != out {
		t.Errorf("on one core: %v\n%s", err, one)
	}
	if other := must(t, dir, "compare", "fast", "slow", "--seed", "5"); other == out {
		t.Error("the seed does not matter")
	}
	if self := must(t, dir, "compare", "fast", "fast"); strings.Contains(self, "worse") || strings.Contains(self, "better") {
		t.Errorf("a run differs from itself:\n%s", self)
	}
	if md := must(t, dir, "compare", "fast", "slow", "--output", "markdown"); !strings.HasPrefix(md, "# Run comparison\n") {
		t.Errorf("Markdown:\n%s", md)
	}
	if csv := must(t, dir, "compare", "fast", "slow", "--output", "csv", "--metric", "p75_e2el_from_schedule_ms"); !strings.HasPrefix(csv, "metric,a,b,") || !strings.Contains(csv, "\np75_e2el_from_schedule_ms,") {
		t.Errorf("CSV:\n%s", csv)
	}
	var object struct{ A, B struct{ Name string } }
	if text := must(t, dir, "compare", "old=fast", "new=slow", "--json"); json.Unmarshal([]byte(text), &object) != nil || object.A.Name != "old" || object.B.Name != "new" {
		t.Errorf("JSON:\n%s", text)
	}
}

// A run and its simulation have the same latencies.
func TestComparePrediction(t *testing.T) {
	t.Parallel()
	dir, measured := t.TempDir(), absolute(t, root+"/traces/runs/prefix")
	// The engines of the sample run.
	write(t, dir, "engine.json", `{"format": "moontide engine", "version": 1, "deployment": {"request-latency": "19.506924ms"},
		"engine": {"max-num-seqs": 1024, "max-num-batched-tokens": 4096, "step-base": "29.896339764ms", "prefill-step": "68.727521241ms", "prefill-per-token": "66.955344µs", "decode-table": "1:0s,4:6.09975779ms,16:12.960859013ms,32:19.299630154ms,64:28.238220026ms,128:36.808258916ms", "decode-per-context-token": "52.672ns"}}`)
	must(t, dir, "simulate", absolute(t, root+"/traces/conversation.jsonl"), "--engine", "engine.json",
		"--engines", "2", "--routing", "prefix", "--out", "predicted")
	out := must(t, dir, "compare", "predicted", measured, "--output", "png=points.png")
	if row := regexp.MustCompile(`(?m)^ *mean_tpot_ms +88\.[0-9]+ +88\.[0-9]+ `); !row.MatchString(out) {
		t.Errorf("the run's own engines predict another TPOT:\n%s", out)
	}
	if png := readFile(t, filepath.Join(dir, "points.png")); !strings.HasPrefix(png, "\x89PNG") {
		t.Errorf("PNG: %.8q", png)
	}
}

func TestCompareGates(t *testing.T) {
	t.Parallel()
	dir := twoRuns(t)
	for _, tc := range []struct {
		sides, gates string
		status       int
		want         string
	}{
		{"fast slow", "mean_tpot_ms>+5%", exitThreshold, "failed: mean_tpot_ms>+5% must not hold: +"},
		{"slow fast", "mean_tpot_ms>+5%", exitDone, ""},
		{"fast fast", "mean_tpot_ms>+0", exitDone, ""},
		{"fast slow", "mean_ttft_ms<1 failed_share>+0", exitDone, ""},
		{"fast slow", "mean_itl_ms>+1 median_itl_ms>+1", exitThreshold, "failed: median_itl_ms>+1 must not hold: +"},
		{"fast slow", "p95_ttft_ms>0", exitThreshold, "p95_ttft_ms>0 must not hold: "},
		{"fast slow", "p99_ttft_ms>1e9", exitThreshold, "too few requests for p99: 100, needs 500"},
		{"slow fast", "mean_tpot>+5%,median_e2el>1h", exitDone, ""},
		{"fast slow", "completed<100", exitDone, ""},
		{"fast slow", "mean_stamp_error_ms>1", exitThreshold, "mean_stamp_error_ms>1 must not hold: not measured in B"},
	} {
		args := append([]string{"compare"}, strings.Fields(tc.sides)...)
		for _, gate := range strings.Fields(tc.gates) {
			args = append(args, "--fail-if", gate)
		}
		r := try(t, dir, "", args...)
		if r.status != tc.status || !strings.Contains(r.err, tc.want) || !strings.Contains(r.out, "Gates: "+map[int]string{exitDone: "PASS", exitThreshold: "FAIL"}[tc.status]+"\n") {
			t.Errorf("%s %s: exit status %d: %s\n%s", tc.sides, tc.gates, r.status, r.err, r.out)
		}
	}
}

func TestCompareRefuses(t *testing.T) {
	t.Parallel()
	dir := twoRuns(t)
	must(t, dir, "simulate", sample(t), "--out", "half", "--limit", "50")
	must(t, dir, "simulate", sample(t), "--out", "hasty", "--speedup", "2")
	spoil(t, dir, "fast", "spoiled")
	for _, tc := range []struct {
		sides  string
		status int
		want   string
	}{
		{"fast half", exitFailed, "fast and half replayed different parts of the trace: 100 and 50 rows"},
		{"fast hasty", exitFailed, "trace.speedup: 1 and 2"},
		{"fast,half slow", exitFailed, "different parts"},
		{"fast spoiled", exitInvalid, "spoiled is INVALID: 100 of 100 prompts"},
		{"hasty spoiled", exitInvalid, "spoiled is INVALID"},
	} {
		args := append([]string{"compare"}, strings.Fields(tc.sides)...)
		if r := try(t, dir, "", args...); r.status != tc.status || !strings.Contains(r.err, tc.want) || r.out != "" {
			t.Errorf("%s: exit status %d: %s\n%s", tc.sides, r.status, r.err, r.out)
		}
		if out := must(t, dir, append(args, "--force")...); !strings.Contains(strings.Join(strings.Fields(out), " "), tc.want) {
			t.Errorf("%s, forced:\n%s", tc.sides, out)
		}
	}
	write(t, dir, "spoiled/requests.jsonl", readFile(t, dir+"/spoiled/requests.jsonl")+`{"cut`)
	if r := try(t, dir, "", "compare", "fast", "spoiled"); !strings.Contains(r.err, "spoiled/requests.jsonl: unreadable lines: 1") {
		t.Errorf("with a cut record: %s", r.err)
	}
}
