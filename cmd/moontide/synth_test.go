package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// Clients that rows name are listed, and drawn alone or all together.
func TestFitClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var rows strings.Builder
	for i := range 400 {
		fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": %d, "output_length": 5, "user": "u%d"}`+"\n", 100*i, 100+300*(i%2)+i%7, i%2)
	}
	write(t, dir, "two.jsonl", rows.String())
	r := try(t, dir, "", "fit", "two.jsonl", "-o", "m.json")
	if r.status != exitDone || !regexp.MustCompile(`u0 +200 +200 +103 +5\n`).MatchString(r.out) {
		t.Errorf("exit status %d, printed:\n%s%s", r.status, r.out, r.err)
	}
	if got := must(t, dir, "synth", "--from", "m.json", "--only", "u1", "--rate-scale", "2"); strings.Count(got, `"user": "u1"`) != 200 || strings.Count(got, "\n") != 200 {
		t.Errorf("with --only u1:\n%s", got)
	}
	// A check compares with the requests of that client alone.
	for _, from := range [][]string{{"--from", "two.jsonl"}, {"--from", "m.json", "--against", "two.jsonl"}} {
		if r := try(t, dir, "", append([]string{"synth", "--only", "u1", "--check", "-o", "one.jsonl"}, from...)...); r.status != exitDone || !strings.Contains(r.out, "PASS") {
			t.Errorf("--check of u1: exit status %d\n%s%s", r.status, r.out, r.err)
		}
	}
}

// --check judges what was written.
func TestSynthCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, "fit", sample(t), "-o", "m.json")
	for name, from := range map[string][]string{
		"sessions": {"--from", sample(t)},
		"tree":     {"--from", sample(t), "--method", "tree"},
		"model":    {"--from", "m.json", "--against", sample(t)},
		"flags":    {"--isl", "30", "--osl", "3", "--against", sample(t)},
		"scaled":   {"--from", sample(t), "--rate-scale", "4", "--speedup-ratio", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"synth", "-n", "30", "--check"}, from...)
			filed := try(t, dir, "", append(args, "-o", name+".jsonl.gz")...)
			failed := strings.Contains(filed.out, "Verdict: FAIL")
			if failed != (filed.status == exitThreshold) || failed == strings.Contains(filed.out, "Verdict: PASS") {
				t.Errorf("exit status %d, printed:\n%s%s", filed.status, filed.out, filed.err)
			}
			if name == "flags" && !failed {
				t.Errorf("a trace of other lengths passes:\n%s", filed.out)
			}
			if strings.Contains(filed.out, "cache sizes are compared with 4 times") != (name == "scaled") {
				t.Errorf("the note on --rate-scale:\n%s", filed.out)
			}
			asJSON := try(t, dir, "", append(args, "-o", name+".jsonl", "--json")...)
			if !json.Valid([]byte(asJSON.out)) || asJSON.status != filed.status {
				t.Errorf("exit status %d, no JSON: %s", asJSON.status, asJSON.out)
			}
		})
	}
}
