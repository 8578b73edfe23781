package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// analyzed holds the part of analyze --json that the tests check.
type analyzed struct {
	Trace  string
	Blocks struct{ Total, Unique int }
	Cache  struct {
		Policies []struct {
			Policy   string
			Capacity int     `json:"capacity_blocks"`
			Bytes    float64 `json:"capacity_bytes"`
			Block    float64 `json:"block_hit_rate"`
		}
		Smallest []struct{ Share float64 }
		Workers  []struct {
			Routing string
			Block   float64 `json:"block_hit_rate"`
		}
	}
	Concurrency struct{ Peak int }
}

func analyzedJSON(t *testing.T, text string) analyzed {
	t.Helper()
	var a analyzed
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return a
}

func TestAnalyzeCaches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", strings.Repeat(threeRows, 2)) // the second half hits all of the first
	a := analyzedJSON(t, must(t, dir, "analyze", "t.jsonl", "--json", "--cache", "lru, belady", "--capacities", "0,5120tokens,1GiB",
		"--kv-bytes-per-token", "1048576", "--workers", "1", "--ttft", "1s", "--tpot", "0s"))
	// 12 references, 5 distinct; with 10 blocks, 1 + 6 are hit.
	want := []struct {
		policy   string
		capacity int
		hits     float64
	}{{"lru", 0, 0}, {"lru", 10, 7}, {"lru", 2, 0}, {"belady", 0, 0}, {"belady", 10, 7}}
	for i, w := range want {
		got := a.Cache.Policies[i]
		if got.Policy != w.policy || got.Capacity != w.capacity || w.capacity != 2 && got.Block != w.hits/12 {
			t.Errorf("point %d is %+v, want %+v", i, got, w)
		}
	}
	if got := a.Cache.Policies[2].Bytes; got != 1<<30 {
		t.Errorf("1 GiB is %v bytes", got)
	}
	if n := len(a.Cache.Smallest); n != 3 {
		t.Errorf("%d smallest caches", n)
	}
	if a.Concurrency.Peak != 2 { // one second each; the second trace starts as the first arrives
		t.Errorf("peak is %d", a.Concurrency.Peak)
	}
	const rows = 6 // a comparison is two single caches and four routings
	for _, w := range a.Cache.Workers[rows : 2*rows] {
		if w.Block != 7.0/12 {
			t.Errorf("one worker of 10 blocks is one cache, but: %+v", w)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "good.jsonl", threeRows)
	if r := try(t, dir, "", "check", "good.jsonl"); r.status != exitDone || !strings.Contains(r.out, "ZERO") && !strings.Contains(r.out, "zero_output") {
		t.Errorf("exit status %d\n%s%s", r.status, r.out, r.err)
	}
	write(t, dir, "bad.jsonl", strings.Replace(threeRows, `"timestamp": 2001`, `"timestamp": 5`, 1)+"oops\n")
	r := try(t, dir, "", "check", "--json", "bad.jsonl")
	var got struct {
		Replayable bool
		Findings   []struct {
			Kind     string
			Examples []struct{ Line int }
		}
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for _, f := range got.Findings {
		if len(f.Examples) > 0 {
			lines[f.Kind] = f.Examples[0].Line
		}
	}
	if r.status != exitFailed || got.Replayable || lines["time_backwards"] != 3 || lines["bad_row"] != 4 {
		t.Errorf("exit status %d: %+v\n%s", r.status, got, r.err)
	}
}
