package main

import (
	"strings"
	"testing"
)

// check exits with status 1 if the trace cannot be replayed faithfully, and the
// text describes the file.
func TestCheckExitStatus(t *testing.T) {
	t.Parallel()
	row := func(rest string) string { return `{"input_length": 1501, "output_length": 5` + rest + "}\n" }
	for _, test := range []struct {
		name, file string
		status     int
		says       string
	}{
		{"a CSV", "TIMESTAMP,PromptTokens,GeneratedTokens\r\n" + strings.Repeat("2023-11-16 18:15:46.6805900,374,44\r\n", 30), exitFailed, "ERROR: not_a_trace, 31 rows"},
		{"of which lines", strings.Repeat("x\n", 31), exitFailed, "and 26 more"},
		{"no timestamps", row(""), exitFailed, "ERROR: no_timestamps"},
		{"empty lists of ids", row(`, "timestamp": 0, "hash_ids": []`), exitDone, "NOTE: no_ids"},
		{"more ids than tokens", row(`, "timestamp": 0, "hash_ids": [` + strings.Repeat("1, ", 3000) + `1]`), exitFailed, "hash_ids has 3001 ids for an input_length of 1501"},
	} {
		dir := t.TempDir()
		write(t, dir, "t.jsonl", test.file)
		if r := try(t, dir, "", "check", "t.jsonl"); r.status != test.status || !strings.Contains(r.out, test.says) {
			t.Errorf("%s: exit status %d, want %d and %q\n%s%s", test.name, r.status, test.status, test.says, r.out, r.err)
		}
	}
}

// A published load is unusual, and no error: moontide's own trace of 1,500 requests
// of 2,000 tokens a second can be replayed.
func TestCheckWarnsOfHighLoads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, "synth", "--isl", "2000", "--osl", "100", "--rate", "1500", "-n", "3000", "-o", "t.jsonl")
	r := try(t, dir, "", "check", "t.jsonl")
	if r.status != exitDone || !strings.Contains(r.out, "WARNING: time_unit") || !strings.Contains(r.out, "can be replayed faithfully, except for the warnings above") {
		t.Errorf("exit status %d\n%s%s", r.status, r.out, r.err)
	}
}
