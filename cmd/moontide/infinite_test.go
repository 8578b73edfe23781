package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// With an infinite rate all requests are due at once, in an open loop: the limit
// on requests in flight makes them queue in the client. The record says so.
func TestInfiniteRate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, verb := range []string{"replay", "simulate"} {
		for _, limit := range []int{0, 3} {
			folder := filepath.Join(dir, fmt.Sprint(verb, limit))
			args := []string{verb, sample(t), "--request-rate", "inf", "--num-prompts", "20", "--prefill-per-token", "0", "--step-base", "1ms", "--out", folder}
			if limit > 0 {
				args = append(args, "--max-concurrency", "3")
			}
			r := try(t, dir, "", args...)
			if !r.measured() || !strings.Contains(r.out, "infinite request rate: all requests are due at once") {
				t.Fatalf("%s: exit status %d\n%s%s", verb, r.status, r.out, r.err)
			}
			info := runOfFolder(t, folder)
			if !info.Trace.AtOnce || info.Trace.Rate != 0 || info.Limits.Closed || info.Limits.MaxConcurrency != limit || info.Trace.DurationMS != 0 {
				t.Errorf("%s: recorded %+v, %+v", verb, info.Trace, info.Limits)
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

// The levels of a bench may include an infinite rate.
func TestBenchInfiniteRate(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t), t.TempDir()
	args := []string{"--isl", "50", "--osl", "3", "--rate", "100,inf", "--max-concurrency", "4", "--num-prompts", "12", "--max-lag", "1h", "--url", url, "--out", "b"}
	r := benched(t, dir, args...)
	if !strings.Contains(r.out, " inf") {
		t.Errorf("it prints\n%s", r.out)
	}
	for name, atOnce := range map[string]bool{"rate-100": false, "rate-inf": true} {
		info := runOfFolder(t, filepath.Join(dir, "b", name))
		if info.Trace.AtOnce != atOnce || (info.Trace.Rate == 0) != atOnce || info.Limits.Closed || info.Limits.MaxConcurrency != 4 || info.Rows != 12 {
			t.Errorf("%s: recorded %+v, %+v", name, info.Trace, info.Limits)
		}
	}
	if r := benched(t, dir, args...); r.status == exitDone && !strings.Contains(r.err, "already done") {
		t.Errorf("resuming says\n%s", r.err)
	}
}

// Percentiles are shown by the verbs that make runs, too.
func TestPercentilesOfRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	simulated := must(t, dir, "simulate", sample(t), "--metric-percentiles", "25,90", "--out", "run")
	reported := must(t, dir, "report", "run", "--percentiles", "25,90")
	if !strings.HasPrefix(simulated, reported) || !strings.Contains(reported, "P25 TTFT (ms):") || strings.Contains(reported, "P99 TTFT (ms):") {
		t.Errorf("simulate prints\n%s\nreport prints\n%s", simulated, reported)
	}
	url := serveFast(t)
	if r := try(t, dir, "", "replay", sample(t), "--url", url, "--limit", "5", "--percentiles", "33"); !strings.Contains(r.out, "P33 TTFT (ms):") || strings.Contains(r.out, "P99 TTFT") {
		t.Errorf("replay prints\n%s%s", r.out, r.err)
	}
	r := benched(t, dir, "--isl", "50", "--osl", "3", "--concurrency", "1,2", "--url", url, "--percentiles", "75,90", "--csv")
	head, _, _ := strings.Cut(r.out, "\n")
	if !strings.Contains(head, "P75 TTFT (ms),P90 TTFT (ms)") || strings.Contains(head, "P99") {
		t.Errorf("bench prints\n%s", r.out)
	}
}
