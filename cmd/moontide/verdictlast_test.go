package main

import (
	"strings"
	"testing"
)

// Each report ends with the verdict and the objectives, where a reader of a terminal sees
// them.
func TestVerdictIsLast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	drawn := strings.Fields("bench --virtual --isl 500 --osl 5 --slo p50_ttft<1m --out ")
	simulated := []string{"simulate", sample(t), "--limit", "40", "--slo", "p50_ttft<1m"}
	with := func(args []string, more ...string) []string { return append(append([]string{}, args...), more...) }
	drawn = drawn[:len(drawn)-1]
	must(t, dir, with(simulated, "--out", "one")...)
	must(t, dir, "simulate", sample(t), "--limit", "40", "--out", "none")
	for _, test := range []struct {
		name, last string
		args       []string
	}{
		{"replay", "Gates", []string{"replay", sample(t), "--limit", "3", "--set", "step-base=1ms", "--slo", "mean_ttft<1h", "--out", "live"}},
		{"bench", "Gates", with(drawn, "--max-concurrency", "1,2", "--out", "sweep")},
		{"bench of one run", "Gates", with(drawn, "--max-concurrency", "1", "--out", "single")},
		{"bench --find", "Gates", with(drawn, "--find", "concurrency", "--max-concurrency", "1,4", "--min-requests", "50", "--out", "find")},
		{"simulate", "Gates", with(simulated, "--out", "two")},
		{"simulate of several", "Gates", with(simulated, "--engines", "1,2")},
		{"report", "Gates", []string{"report", "one", "--slo", "p50_ttft<1m"}},
		{"report without gates", "Verdict", []string{"report", "none"}},
		{"report of runs", "Gates", []string{"report", "one", "two", "--slo", "p50_ttft<1m"}},
		{"report of sweeps", "Gates", []string{"report", "sweep", "single", "--slo", "p50_ttft<1m"}},
		{"compare", "Gates", []string{"compare", "one", "two", "--slo", "mean_ttft<+5%"}},
		{"check", "", []string{"check", sample(t)}},
		{"synth --check", "Verdict", []string{"synth", "--from", sample(t), "--check", "-o", "drawn.jsonl"}},
	} {
		r := try(t, dir, "", test.args...)
		if r.status == exitMisused {
			t.Errorf("%s: exit status %d\n%s", test.name, r.status, r.err)
		}
		end := strings.LastIndex(r.out, "\nVerdict: ") + 1
		if end == 0 {
			end = strings.LastIndex(r.out, "\nGates: ") + 1
		}
		if test.last == "" {
			end = len(r.out)
		}
		last := ""
		for line := range strings.Lines(r.out[end:]) {
			if heading, _, found := strings.Cut(line, ": "); found && (heading == "Verdict" || heading == "Gates") {
				last = heading
			} else if line != "\n" && !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: after %s comes %q", test.name, last, line)
			}
		}
		if last != test.last {
			t.Errorf("%s ends with %q\n%s", test.name, last, r.out)
		}
	}
}
