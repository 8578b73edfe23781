package main

import (
	"path/filepath"
	"slices"
	"testing"
)

// The runs of a sweep over speedups are those of moontide simulate with the same speedup,
// for each of several deployments.
func TestBenchTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, "bench", sample(t), "--speedup", "0.5,4", "--engines", "1,2", "--virtual", "--limit", "50", "--out", "sweep")
	want := []string{"engines-1-speedup-0.5", "engines-1-speedup-4", "engines-2-speedup-0.5", "engines-2-speedup-4", "set.json"}
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
