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
func planned(t *testing.T, dir string, args ...string) (p report.PlanJSON) {
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
	p := planned(t, dir, "--engines", "1..3..2", "--router", "prefix,round_robin", "--prefill-engines", "1,2", "--decode-engines", "2", "--max-num-seqs", "64,128")
	var names []string
	for _, d := range p.Deployments {
		names = append(names, d.Deployment)
	}
	want := []string{
		"1 engine, prefix, max-num-seqs 64", "3 engines, prefix, max-num-seqs 64", "1 engine, prefix, max-num-seqs 128", "3 engines, prefix, max-num-seqs 128",
		"1 engine, round-robin, max-num-seqs 64", "3 engines, round-robin, max-num-seqs 64", "1 engine, round-robin, max-num-seqs 128", "3 engines, round-robin, max-num-seqs 128",
		"1P+2D, prefix, max-num-seqs 64", "2P+2D, prefix, max-num-seqs 64", "1P+2D, prefix, max-num-seqs 128", "2P+2D, prefix, max-num-seqs 128",
		"1P+2D, round-robin, max-num-seqs 64", "2P+2D, round-robin, max-num-seqs 64", "1P+2D, round-robin, max-num-seqs 128", "2P+2D, round-robin, max-num-seqs 128",
	}
	if !slices.Equal(names, want) || p.Requests != 100 {
		t.Errorf("%d requests, deployments %q", p.Requests, names)
	}
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("files %q", left)
	}
	must(t, dir, "simulate", sample(t), "--engines", "3", "--router", "prefix", "--max-num-seqs", "128", "--out", "one")
	must(t, dir, "simulate", sample(t), "--prefill-engines", "2", "--decode-engines", "2", "--max-num-seqs", "64", "--out", "pd")
	for folder, name := range map[string]string{"one": want[3], "pd": want[13]} {
		var summary map[string]any
		text, err := os.ReadFile(filepath.Join(dir, folder, "summary.json"))
		if err != nil || json.Unmarshal(text, &summary) != nil {
			t.Fatal(err)
		}
		for key, value := range p.Deployments[slices.Index(want, name)].Metrics {
			single, found := summary[key]
			if key == "cached_share" { // not in the summary
				continue
			}
			if !found || single != *value {
				t.Errorf("%s: %s is %v, of a run alone %v", name, key, *value, single)
			}
		}
	}
}

// The answer of a search agrees with the table, and is the same in all forms.
func TestSimulateFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	slo := []string{"--slo", "p90_ttft<1s", "--speedup", "10"}
	find := append([]string{"--find", "engines", "--html", "p.html", "--png", "p.png"}, slo...)
	p := planned(t, dir, find...)
	a := p.Answers[0]
	if a.Level == nil || a.Missed == nil || *a.Missed != *a.Level-1 || !a.Complete {
		t.Fatalf("answer %+v", a)
	}
	for _, d := range planned(t, dir, append([]string{"--engines", "1..24"}, slo...)...).Deployments {
		if n := float64(d.Engines); n == *a.Level && !d.Met || n == *a.Missed && d.Met {
			t.Errorf("%s: met %v, and the answer is %v", d.Deployment, d.Met, *a.Level)
		}
	}
	sentence := strings.Fields(a.Text)
	page, err := os.ReadFile(filepath.Join(dir, "p.html"))
	if err != nil {
		t.Fatal(err)
	}
	for form, text := range map[string]string{
		"text": must(t, dir, append([]string{"simulate", sample(t)}, find...)...), "page": string(page),
		"Markdown": must(t, dir, append([]string{"simulate", sample(t), "--markdown"}, find...)...),
	} {
		text = strings.NewReplacer("&lt;", "<", `\<`, "<", `\_`, "_").Replace(text)
		if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(sentence, " ")) {
			t.Errorf("%s: no %q in\n%s", form, a.Text, text)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(must(t, dir, append([]string{"simulate", sample(t), "--csv"}, find...)...))).ReadAll()
	if err != nil || len(rows) != a.Trials+1 {
		t.Errorf("%d lines of CSV for %d trials (%v)", len(rows), a.Trials, err)
	}
	if r := try(t, dir, "", "simulate", sample(t), "--find", "engines", "--slo", "p90_ttft<1ms"); r.status != exitThreshold || !strings.Contains(r.err, "no number of engines up to 1,024 meets the objectives. 1,024 engines: p90 TTFT ") {
		t.Errorf("nothing meets them: exit status %d\n%s", r.status, r.err)
	}
	if r := try(t, dir, "", "simulate", sample(t), "--engines", "1,2", "--slo", "p90_ttft<1ms"); r.status != exitThreshold || !strings.Contains(r.err, "no deployment meets the objectives") {
		t.Errorf("none of two meets them: exit status %d\n%s", r.status, r.err)
	}
	if r := try(t, dir, "", "simulate", sample(t), "--engines", "1,2", "--slo", "p90_ttft<1ms", "--find", "rate"); r.status != exitThreshold || !strings.Contains(r.err, "1 engine: not even") || !strings.Contains(r.err, "2 engines: not even") {
		t.Errorf("no rate meets them: exit status %d\n%s", r.status, r.err)
	}
}

func TestSimulatePlanMisuse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "bare.jsonl", `{"timestamp": 0, "input_length": 5, "output_length": 1}`+"\n")
	slo := " --slo mean_ttft<1s"
	for args, want := range map[string]string{
		"--engines 2 --json":                                            "--json is for several deployments",
		"--engines 2 --png x.png":                                       "--png is for several deployments",
		"--engines 0..3":                                                `--engines: "0" is not a whole number from 1 to`,
		"--engines 3..1":                                                "--engines: the range 3..1 is empty",
		"--engines 1,2000":                                              "--engines must be from 1 to 1024: 2000",
		"--engines 1,1":                                                 "--engines: 1 is repeated",
		"--engines 1..100 --max-num-seqs 1..200":                        "more than 10000 deployments",
		"--engines 1,2 --json --csv":                                    "choose one",
		"--prefill-engines 1..3":                                        "--prefill-engines and --decode-engines go together",
		"--find engines":                                                "--find engines needs objectives: --slo CONDITIONS",
		"--find moon" + slo:                                             "moon",
		"--find engines --engines 4" + slo:                              "--engines is the range to search, such as 1..64: 4",
		"--find engines --engines 1,2,4" + slo:                          "--engines is the range to search",
		"--find engines --prefill-engines 1..3" + slo:                   "--find engines varies --engines: for --prefill-engines, give lists",
		"--find rate --speedup 2" + slo:                                 "--find rate sets the load: omit --speedup",
		"--find rate --rate inf" + slo:                                  "--rate inf has none",
		"--find concurrency --max-concurrency 2" + slo:                  "--find concurrency sets the load: omit --max-concurrency",
		"--find rate --slo output_throughput>5":                         "--find rate looks for the largest load, and output_throughput>5 holds from a load on",
		"--find concurrency --fail-if achieved_rate<=5":                 "--find concurrency looks for the largest load, and achieved_rate<=5 holds from a load on",
		"--engines 1,2 --max-num-seqs 9000 --max-num-batched-tokens 10": "--max-num-batched-tokens 10 is below --max-num-seqs 9000",
	} {
		r := try(t, dir, "", append([]string{"simulate", sample(t)}, words(args)...)...)
		if r.status != exitMisused || !strings.Contains(r.err, want) || r.out != "" {
			t.Errorf("%s: exit status %d, no %q in\n%s%s", args, r.status, want, r.err, r.out)
		}
	}
	if r := try(t, dir, "", "simulate", "bare.jsonl", "--find", "rate", "--slo", "mean_ttft<1s"); r.status != exitMisused || !strings.Contains(r.err, "there is no rate to scale: give the trace arrivals with --rate") {
		t.Errorf("without a rate: exit status %d\n%s", r.status, r.err)
	}
	if left := files(t, dir); len(left) != 1 {
		t.Errorf("files %q", left)
	}
}

// With a fitted engine, answers carry its held-out error, and loads outside the fitted range
// get a warning.
func TestSimulateHeldOutError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "engine.json", `{"format": "moontide engine", "version": 1, "deployment": {"engines": 1},
		"engine": {"engine-block-size": 16, "step-base": "4ms", "prefill-per-token": "15us", "decode-per-context-token": "26ns"},
		"fit": {"held_out_errors": [{"metric": "p99_ttft_ms", "predictions": 8, "median": 0.05, "p90": 0.152, "max": 0.3}], "not_identified": [],
			"range": {"isl": {"low": 1, "high": 100}, "osl": {"low": 0, "high": 0}, "concurrency": {"low": 0, "high": 0}, "running": {"low": 0, "high": 0}},
			"fitted": 8, "excluded": 0, "provenance": {"version": "1", "sources": []}}}`)
	p := planned(t, dir, "--engine", "engine.json", "--find", "concurrency", "--slo", "p90_ttft<600ms")
	if text := p.Answers[0].Text; !strings.Contains(text, "±15 % by the held-out rows") || p.HeldOutErrors["p99_ttft_ms"] != 0.152 {
		t.Errorf("answer %q, errors %v", text, p.HeldOutErrors)
	}
	for _, d := range p.Deployments {
		if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "outside the range that engine.json was fitted to: ISL") {
			t.Errorf("%s: warnings %q", d.Deployment, d.Warnings)
		}
	}
}
