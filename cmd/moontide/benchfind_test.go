package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moontide/replay/runfile"
)

// A search in virtual time brackets the largest rate, and the same command continues it:
// runs that are there are not repeated, and the answer is the same.
func TestBenchFindsRate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"bench", "--isl", "3000", "--osl", "15", "--find", "rate", "--slo", "p90_ttft<400ms,failed<1%", "--rate", "4,64", "--min-requests", "100", "--virtual", "--out", "sweep", "--output", "png=search.png"}
	out := must(t, dir, args...)
	for _, want := range []string{"LOAD SEARCH", "The objectives are met at 1", "req/s and missed at ", "p90 TTFT is", "Achieved", "Gates: PASS"} {
		if !strings.Contains(unwrapped(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	runs := folders(t, filepath.Join(dir, "sweep"))
	if len(runs) > 21 || !slices.Contains(runs, "rate-8") {
		t.Errorf("the folder holds %v", runs)
	}
	if run := runOfFolder(t, filepath.Join(dir, "sweep", "rate-8")); run.Point.Repeat != 1 || run.Settings.Seed == 0 || run.Rows < 100 {
		t.Errorf("%+v", run)
	}
	if err := os.Remove(filepath.Join(dir, "sweep", "rate-8", runfile.SummaryFile)); err != nil { // as after a kill
		t.Fatal(err)
	}
	again := try(t, dir, "", args...)
	if again.status != exitDone || again.out != out || strings.Count(again.err, "already done") != len(runs)-2 {
		t.Errorf("exit status %d\n%s%s", again.status, again.err, again.out)
	}
	if table := must(t, dir, "report", "sweep", "--output", "csv"); strings.Count(table, "\n") < len(runs)-2 {
		t.Errorf("report of the runs\n%s", table)
	}
}

// The largest concurrency of a trace's requests is a whole number, and the largest speedup
// of its arrivals has no repeated runs in virtual time, which give the same result.
func TestBenchFindsOtherLoads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for what, want := range map[string]string{"concurrency": "The objectives are met at concurrency ", "speedup": "The objectives are met at speedup "} {
		out := must(t, dir, "bench", sample(t), "--find", what, "--slo", "p90_tpot<60ms", "--min-requests", "60", "--virtual", "--out", what)
		if !strings.Contains(unwrapped(out), want) {
			t.Errorf("%s", out)
		}
		for _, name := range folders(t, filepath.Join(dir, what)) {
			if strings.Contains(name, "repeat") && what == "speedup" {
				t.Errorf("%s is a run that was repeated", name)
			}
		}
	}
}

// A misuse that shows in a later run ends the search with exit status 2, after the runs
// before it have been shown.
func TestBenchFindLaterMisuse(t *testing.T) {
	t.Parallel()
	r := try(t, t.TempDir(), "", "bench", "--isl", "20", "--osl", "2", "--virtual", "--find", "concurrency", "--slo", "p99_ttft<1h", "--limit", "600")
	if r.status != exitMisused || !strings.Contains(r.err, "cannot be judged at concurrency 64: too few requests") || !strings.Contains(unwrapped(r.out), "Loads up to concurrency 32 meet the objectives") {
		t.Errorf("exit status %d\n%s%s", r.status, r.err, r.out)
	}
}

// A search without an answer names the run that failed. It ends at once if a lower load
// would fail, too.
func TestBenchFindsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	find := []string{"bench", "--isl", "1000", "--osl", "10", "--virtual", "--find", "rate", "--min-requests", "500", "--slo"}
	r := try(t, dir, "", append(find, "p99_ttft<1ms", "--out", "never")...)
	if r.status != exitThreshold || !strings.Contains(unwrapped(r.out), "No load meets the objectives: not even ") || !strings.Contains(unwrapped(r.out), "a lower load would not help") || !strings.Contains(r.out, "Gates: FAIL") {
		t.Errorf("exit status %d\n%s%s", r.status, r.err, r.out)
	}
	r = try(t, dir, "", append(find, "p99_ttft<1ms", "--out", "never", "--json", "--output", "junit=junit.xml")...)
	if r.status != exitThreshold || !strings.Contains(r.out, `"outcome": "fail"`) || !strings.Contains(r.out, `"load": null`) {
		t.Errorf("exit status %d\n%s%s", r.status, r.err, r.out)
	}
	if junit, err := os.ReadFile(filepath.Join(dir, "junit.xml")); err != nil || !strings.Contains(string(junit), `<failure type="fail" message="No load meets`) {
		t.Errorf("%v %s", err, junit)
	}
	r = try(t, dir, "", append(find, "p99_ttft<1h", "--rate", "1,5", "--out", "always")...)
	if r.status != exitDone || !strings.Contains(unwrapped(r.out), "All loads tried meet the objectives, up to 5 req/s, the highest one.") {
		t.Errorf("exit status %d\n%s%s", r.status, r.err, r.out)
	}
}

// Runs that are INVALID meet nothing: after three the search stops, with exit status 3, and
// continues there.
func TestBenchFindInvalid(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t), t.TempDir()
	for range 2 {
		r := try(t, dir, "", "bench", "--isl", "20", "--osl", "2", "--url", url, "--find", "concurrency", "--slo", "mean_ttft<1h", "--limit", "20", "--verdict", "lag=1ns,lag-share=0.000001", "--out", "sweep")
		if r.status != exitInvalid || !strings.Contains(unwrapped(r.out), "No run gave an answer. At concurrency 1, the run is INVALID: client lag") || !strings.Contains(unwrapped(r.out), "3 runs were INVALID, the last with concurrency 1: ") || !strings.Contains(r.out, "undecided") || !strings.Contains(r.out, "Verdict: INVALID") {
			t.Errorf("exit status %d\n%s%s", r.status, r.err, r.out)
		}
		if got, want := folders(t, filepath.Join(dir, "sweep")), []string{"concurrency-1", "concurrency-1-repeat-2", "concurrency-1-repeat-3", "set.json"}; !slices.Equal(got, want) {
			t.Errorf("the folder holds %v", got)
		}
	}
}
