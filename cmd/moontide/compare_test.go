package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A comparison depends on its sides and its seed, and on nothing else.
func TestCompare(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, "simulate", sample(t), "--out", "fast")
	must(t, dir, "simulate", sample(t), "--out", "slow", "--step-base", "20ms")
	out := must(t, dir, "compare", "fast", "slow")
	cmd := moontide(dir, "compare", "fast", "slow")
	cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	if again, err := cmd.Output(); err != nil || string(again) != out {
		t.Errorf("the same command prints\n%s\nand on one core %v\n%s", out, err, again)
	}
	for _, other := range []string{"slow fast", "fast slow --seed 5"} {
		if text := must(t, dir, append([]string{"compare"}, strings.Fields(other)...)...); text == out {
			t.Errorf("compare %s prints the same", other)
		}
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
