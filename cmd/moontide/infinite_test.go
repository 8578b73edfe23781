package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// With an infinite rate all requests are due at once, in an open loop: the limit on requests
// in flight makes them queue in the client, as the record shows.
func TestInfiniteRate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var rows strings.Builder
	for i := range 20 {
		fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": 30, "output_length": 100}`+"\n", 100*i)
	}
	write(t, dir, "t.jsonl", rows.String())
	for _, verb := range []string{"replay", "simulate"} {
		for _, limit := range []int{0, 3} {
			folder := filepath.Join(dir, fmt.Sprint(verb, limit))
			args := []string{verb, "t.jsonl", "--rate", "inf", "--set", "prefill-per-token=0", "--set", "step-base=3ms", "--out", folder}
			if limit > 0 {
				args = append(args, "--max-concurrency", "3")
			}
			r := try(t, dir, "", args...)
			if !r.measured() || !strings.Contains(r.out, "infinite request rate: all requests are due at once") {
				t.Fatalf("%s: exit status %d\n%s%s", verb, r.status, r.out, r.err)
			}
			info := runOfFolder(t, folder)
			if !info.Settings.AtOnce() || info.Settings.DrawnRate() != 0 || info.Settings.Closed || info.Settings.MaxConcurrency != limit || info.Trace.DurationMS != 0 {
				t.Errorf("%s: recorded %+v, %+v", verb, info.Trace, info.Settings)
			}
			inFlight := 0
			for _, rec := range recordsOf(t, folder) {
				if rec.Due != 0 {
					t.Errorf("%s: row %d is due at %v", verb, rec.Row, rec.Due)
				}
				if rec.Sent.Value < recordsOf(t, folder)[0].Done {
					inFlight++
				}
			}
			if limit == 3 && inFlight > 6 || limit == 0 && inFlight != 20 {
				t.Errorf("%s with a limit of %d: %d requests are sent before the first ends", verb, limit, inFlight)
			}
		}
	}
	if a, b := must(t, dir, "convert", sample(t), "--rate", "inf"), must(t, dir, "convert", sample(t), "--rate", "+Inf", "--arrival", "gamma"); a != b || strings.Count(a, `"timestamp": 0,`) != 100 {
		t.Errorf("convert --rate inf writes\n%.300s", a)
	}
}
