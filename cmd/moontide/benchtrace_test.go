package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The runs of a sweep over speedups are those of moontide simulate with the same speedup,
// for each of several deployments.
func TestBenchTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, "bench", sample(t), "--speedup", "0.5,4", "--engines", "1,2", "--virtual", "--num-prompts", "50", "--out", "sweep")
	want := []string{"1-engine-speedup-0.5", "1-engine-speedup-4", "2-engines-speedup-0.5", "2-engines-speedup-4", "sweep.json"}
	if got := folders(t, filepath.Join(dir, "sweep")); !slices.Equal(got, want) {
		t.Fatalf("the folder holds %v", got)
	}
	must(t, dir, "simulate", sample(t), "--speedup", "4", "--engines", "2", "--limit", "50", "--out", "alone")
	alone, leg := recordsOf(t, filepath.Join(dir, "alone")), recordsOf(t, filepath.Join(dir, "sweep", want[3]))
	if len(alone) != 50 || len(leg) != 50 {
		t.Fatalf("%d and %d records", len(alone), len(leg))
	}
	for row, rec := range leg {
		if of := alone[row]; rec.Due != of.Due || rec.First != of.First || rec.Done != of.Done {
			t.Errorf("row %d: %+v, alone %+v", row, rec, of)
		}
	}
}

// Sweeps of several shapes have a table for each, and reports of two sweeps have the
// ratios of each shape.
func TestReportOfSweeps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for sweep, engines := range map[string]string{"one": "1", "two": "2"} {
		out := must(t, dir, "bench", "--shape", "300:15,100:30", "--concurrency", "2,8", "--virtual", "--engines", engines, "--out", sweep)
		if !strings.Contains(out, "\nISL 300, OSL 15\n") || !strings.Contains(out, "\nISL 100, OSL 30\n") {
			t.Errorf("%s", out)
		}
	}
	out := must(t, dir, "report", "old=one", "new=two", "--png", "sweeps.png", "--html", "sweeps.html")
	for _, want := range []string{
		"\nold, ISL 300, OSL 15\n", "\nnew, ISL 100, OSL 30\n",
		"\nSide by side, with the ratio to old, ISL 300, OSL 15\n", "\nSide by side, with the ratio to old, ISL 100, OSL 30\n",
	} {
		if strings.Count(out, want) != 1 {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	must(t, dir, "bench", sample(t), "--virtual", "--out", "trace")
	for want, args := range map[string][]string{
		"only sweeps over the same quantity can be compared": {"one", "trace"},
		"name either runs or sweeps":                         {"one", "two/300-15-concurrency-2"},
		"a sweep has no --json":                              {"one", "--json"},
		"--merge is for the runs of one test":                {"one", "two", "--merge"},
	} {
		if r := try(t, dir, "", append([]string{"report"}, args...)...); r.status == exitDone || !strings.Contains(r.err, want) {
			t.Errorf("%v: exit status %d, %s", args, r.status, r.err)
		}
	}
}
