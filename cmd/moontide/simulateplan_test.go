package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moontide/analyze/report"
)

// planned returns what simulate --json prints.
func planned(t *testing.T, dir string, args ...string) (p report.OutcomeJSON) {
	t.Helper()
	out := must(t, dir, append([]string{"simulate", sample(t), "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return p
}

// Lists give all combinations, in both families, and no folder. Each deployment has the
// numbers of its own run.
func TestSimulateLists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := planned(t, dir, "--engines", "1..3..2", "--routing", "prefix,round_robin", "--prefill-engines", "1,2", "--decode-engines", "2", "--max-num-seqs", "64,128")
	var names []string
	for _, d := range p.Runs {
		names = append(names, d.Name)
	}
	want := []string{
		"1 engine, prefix, max-num-seqs 64", "3 engines, prefix, max-num-seqs 64", "1 engine, prefix, max-num-seqs 128", "3 engines, prefix, max-num-seqs 128",
		"1 engine, round-robin, max-num-seqs 64", "3 engines, round-robin, max-num-seqs 64", "1 engine, round-robin, max-num-seqs 128", "3 engines, round-robin, max-num-seqs 128",
		"1P+2D, prefix, max-num-seqs 64", "2P+2D, prefix, max-num-seqs 64", "1P+2D, prefix, max-num-seqs 128", "2P+2D, prefix, max-num-seqs 128",
		"1P+2D, round-robin, max-num-seqs 64", "2P+2D, round-robin, max-num-seqs 64", "1P+2D, round-robin, max-num-seqs 128", "2P+2D, round-robin, max-num-seqs 128",
	}
	if !slices.Equal(names, want) {
		t.Errorf("deployments %q", names)
	}
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("files %q", left)
	}
	must(t, dir, "simulate", sample(t), "--engines", "3", "--routing", "prefix", "--max-num-seqs", "128", "--out", "one")
	must(t, dir, "simulate", sample(t), "--prefill-engines", "2", "--decode-engines", "2", "--max-num-seqs", "64", "--out", "pd")
	for folder, name := range map[string]string{"one": want[3], "pd": want[13]} {
		var summary map[string]any
		text, err := os.ReadFile(filepath.Join(dir, folder, "summary.json"))
		if err != nil || json.Unmarshal(text, &summary) != nil {
			t.Fatal(err)
		}
		for key, value := range p.Runs[slices.Index(want, name)].Metrics {
			single, found := summary[key]
			if slices.Contains(words("cached_share engines output_throughput_per_engine mean_queue_ms"), key) { // not in the summary
				continue
			}
			if !found || single != *value {
				t.Errorf("%s: %s is %v, of a run alone %v", name, key, *value, single)
			}
		}
	}
}

// The smallest deployment that meets the objectives is named in all forms.
func TestSimulateObjectives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plan := []string{"simulate", sample(t), "--speedup", "10", "--engines", "1..24", "--slo", "p90_ttft<1s"}
	p := planned(t, dir, plan[2:]...)
	n := slices.IndexFunc(p.Runs, func(d report.OutcomeRunJSON) bool { return d.Outcome == "pass" })
	if n < 1 {
		t.Fatalf("deployment %d is the first that meets the objectives: this shows nothing", n)
	}
	want := p.Runs[n].Name + ", the smallest: p90_ttft_ms<1000 must hold"
	must(t, dir, append(plan, "--html", "p.html", "--output", "png=p.png")...)
	page := read(t, filepath.Join(dir, "p.html"))
	for form, text := range map[string]string{"text": must(t, dir, plan...), "page": string(page), "Markdown": must(t, dir, append(plan, "--output", "markdown")...)} {
		text = strings.NewReplacer("&lt;", "<", `\<`, "<", `\_`, "_").Replace(text)
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("%s: no %q in\n%s", form, want, text)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(must(t, dir, append(plan, "--output", "csv")...))).ReadAll()
	if err != nil || len(rows) != 25 {
		t.Errorf("%d lines of CSV (%v)", len(rows), err)
	}
	if r := try(t, dir, "", "simulate", sample(t), "--engines", "1,2", "--slo", "p90_ttft<1ms"); r.status != exitThreshold || !strings.Contains(r.err, "no deployment meets the objectives") {
		t.Errorf("none of two meets them: exit status %d\n%s", r.status, r.err)
	}
}

// With a fitted engine, answers carry its held-out error, and loads outside the fitted range
// get a warning.
func TestSimulateHeldOutError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "engine.json", `{"format": "moontide engine", "version": 1, "deployment": {"engines": 1},
		"engine": {"engine-block-size": 16, "step-base": "4ms", "prefill-per-token": "15us", "decode-per-context-token": "26ns"},
		"fit": {"held_out_errors": [{"metric": "mean_ttft_ms", "predictions": 8, "median": 0.05, "p90": 0.152, "max": 0.3}], "not_identified": [],
			"range": {"isl": {"low": 1, "high": 100}, "osl": {"low": 0, "high": 0}, "concurrency": {"low": 0, "high": 0}, "running": {"low": 0, "high": 0}},
			"fitted": 8, "excluded": 0, "provenance": {"version": "1", "sources": []}}}`)
	plan := []string{"--engine", "engine.json", "--engines", "1,2", "--slo", "mean_ttft<1h"}
	p := planned(t, dir, plan...)
	if p.HeldOutErrors["mean_ttft_ms"] != 0.152 {
		t.Errorf("errors %v", p.HeldOutErrors)
	}
	if text := must(t, dir, append([]string{"simulate", sample(t)}, plan...)...); !strings.Contains(text, "±15 % by the held-out rows") {
		t.Errorf("no held-out error in\n%s", text)
	}
	for _, d := range p.Runs {
		if !strings.Contains(strings.Join(d.Notes, " "), "outside the range that engine.json was fitted to: ISL") {
			t.Errorf("%s: notes %q", d.Name, d.Notes)
		}
	}
}
