package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"moontide/replay/runfile"
)

// A report shows the runs in every requested form.
func TestReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		must(t, dir, "simulate", sample(t), "--out", name)
	}
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"a", "--goodput", "ttft:100000", "--metrics", "ttft,ttst", "--percentiles", "1,99.9"}, []string{"Request goodput (req/s): ", "P99.9 TTST (ms): ", "100  100  100.00 %\n"}},
		{[]string{"a", "slow=b"}, []string{"a\n====", "\nslow\n===="}},
		{[]string{"a", "slow=b", "--output", "csv"}, []string{"run,verdict,completed", "\nslow,VALID,100,0,"}},
		{[]string{"a", "slow=b", "--output", "markdown"}, []string{"| Metric | a | slow |", "| Successful requests | 100 | 100 |"}},
		{[]string{"a", "--output", "vllm"}, []string{"Mean ITL (ms): ", "Verdict: VALID"}},
		{[]string{"a", "--output", "vllm", "--metrics", "itl"}, []string{"-Inter-token Latency-", "ITL: the gaps between token chunks"}},
		{[]string{"a", "--output", "dynamo"}, []string{"Total Token throughput (tok/s):          ", "Median E2EL (ms): ", "ITL: one value per request"}},
		{[]string{"a", "--output", "aiperf"}, []string{`"time_to_first_token":{"value":`, `"benchmark_phase":"profiling"`}},
		{[]string{"a", "--output", "over-time"}, []string{"from_s,to_s,due,"}},
		{[]string{"a", "b", "--html", "-"}, []string{"<!DOCTYPE html>", "<h2 class=\"part\">b</h2>"}},
		{[]string{"a", "b", "--output", "junit", "--slo", "completed>=100"}, []string{"<testsuites name=\"moontide\" tests=\"4\" failures=\"0\">"}},
		{[]string{"a", "b", "--output", "png"}, []string{"\x89PNG"}},
	} {
		out := must(t, dir, append([]string{"report"}, test.args...)...)
		for _, want := range test.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%.2000s", test.args, want, out)
			}
		}
	}
}

// A line that was cut by a kill is skipped and counted.
func TestReportOfACutRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, "simulate", sample(t), "--out", "run")
	path := filepath.Join(dir, "run", runfile.RequestsFile)
	text := read(t, path)
	writeText(t, path, string(text[:len(text)-40]))
	r := try(t, dir, "", "report", "run", "--json")
	var summary struct{ Completed int }
	if err := json.Unmarshal([]byte(r.out), &summary); err != nil || summary.Completed != 99 || !strings.Contains(r.err, "unreadable lines: 1; the first: ") {
		t.Errorf("%v, %d completed, %s", err, summary.Completed, r.err)
	}
}
