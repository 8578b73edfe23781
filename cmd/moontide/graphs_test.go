package main

import (
	"os"
	"strings"
	"testing"
)

// graphRows has an agent, a1 and a2, with two sub-agents in between, x1 and y1.
const graphRows = `{"timestamp": 0, "input_length": 10, "output_length": 2, "session_id": "a", "request_id": "a1"}
{"timestamp": 1, "input_length": 10, "output_length": 2}
{"input_length": 10, "output_length": 2, "session_id": "x", "request_id": "x1", "after": ["a1"], "delay": 5, "delay_kind": "tool"}
{"input_length": 10, "output_length": 2, "session_id": "y", "request_id": "y1", "after": ["a1"], "delay": 6, "delay_kind": "tool"}
{"input_length": 10, "output_length": 2, "session_id": "a", "request_id": "a2", "after": ["a1", "x1", "y1"], "delay": 7, "delay_kind": "think"}
{"timestamp": 9000, "input_length": 10, "output_length": 2, "session_id": "b"}
`

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every verb that follows a graph names the line of a cycle, and of an id that no row
// has.
func TestImpossibleGraphsHaveLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeText(t, dir+"/cycle.jsonl", strings.Replace(graphRows, `"a1"}`, `"a1", "after": ["x1"]}`, 1))
	writeText(t, dir+"/gone.jsonl", strings.Replace(graphRows, `"x1", "y1"]`, `"x1", "y2"]`, 1))
	writeText(t, dir+"/twice.jsonl", strings.Replace(graphRows, `"y1", "after"`, `"x1", "after"`, 1))
	for name, want := range map[string]string{
		"cycle.jsonl": `cycle.jsonl:3: requests wait for each other: "a1" after "x1" after "a1"`,
		"gone.jsonl":  `gone.jsonl:5: after names request_id "y2", which no row has`,
		"twice.jsonl": `twice.jsonl:5: after names request_id "x1", which several rows have: lines 3 and 4`,
	} {
		for _, verb := range []string{"convert -o out.jsonl", "convert --sort -o out.jsonl", "convert --part 1/2 -o out.jsonl", "convert --speedup 2 -o out.jsonl",
			"simulate --out run", "simulate --rate 5 --out run", "analyze"} {
			r := try(t, dir, "", append(strings.Fields(verb), name)...)
			if r.status != exitFailed || !strings.Contains(r.err, want) {
				t.Errorf("%s %s: exit status %d\n%s", verb, name, r.status, r.err)
			}
		}
	}
	for _, verb := range []string{"convert --skip-bad-rows -o out.jsonl", "simulate --skip-bad-rows --out run", "simulate --end 8s --out run2", "analyze --skip-bad-rows"} {
		if r := try(t, dir, "", append(strings.Fields(verb), "gone.jsonl")...); r.status != exitDone {
			t.Errorf("%s: exit status %d\n%s", verb, r.status, r.err)
		}
	}
}

// Steps of convert keep an agent with its sub-agents, drop the ids of rows that they
// drop, and order rows by all that they wait for.
func TestConvertGraphs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeText(t, dir+"/t.jsonl", graphRows)
	for _, tc := range []struct{ flags, want, note string }{
		{"--part 2/2", "a1 - x1 y1 a2 -", ""},
		{"--shard 1/2", "", "no requests left"},
		{"--sample 0.99", "a1 - x1 y1 a2 -", ""},
		{"--start 1ms", "- -", ""},
		{"--limit 4", "a1 - x1 y1", ""},
		{"--session-rate 1 --arrival constant", "a1 x1 y1 - a2 -", "estimated"},
		{"--session-rate 2 --arrival constant --time-scale-tool 200", "a1 - - x1 y1 a2", "estimated"},
		{"--max-think 1ms --sort", "a1 - x1 y1 a2 -", "estimated"},
	} {
		r := try(t, dir, "", append(append([]string{"convert"}, strings.Fields(tc.flags)...), "t.jsonl")...)
		var ids []string
		for line := range strings.Lines(r.out) {
			id := "-"
			if _, rest, named := strings.Cut(line, `"request_id": "`); named {
				id, _, _ = strings.Cut(rest, `"`)
			}
			ids = append(ids, id)
		}
		if got := strings.Join(ids, " "); got != tc.want || !strings.Contains(r.err, tc.note) {
			t.Errorf("%s: rows %s, want %s\n%s", tc.flags, got, tc.want, r.err)
		}
	}
	writeText(t, dir+"/late.jsonl", `{"timestamp": 0, "input_length": 1, "output_length": 1, "request_id": "cut"}
{"timestamp": 10, "input_length": 2, "output_length": 1, "request_id": "kept"}
{"timestamp": 20, "input_length": 3, "output_length": 1, "after": ["cut", "kept"]}
`)
	r := try(t, dir, "", "convert", "--start", "5ms", "late.jsonl")
	want := `{"timestamp": 5, "input_length": 2, "output_length": 1, "request_id": "kept"}
{"timestamp": 15, "input_length": 3, "output_length": 1, "after": ["kept"]}
`
	if r.out != want || !strings.Contains(r.err, "note: 1 request id removed from after because their rows are not kept") {
		t.Errorf("got\n%s\n%s", r.out, r.err)
	}
	must(t, dir, "convert", "--ids", "separate", "t.jsonl", "t.jsonl", "-o", "both.jsonl")
	if got := must(t, dir, "convert", "--ids", "shared", "both.jsonl", "--limit", "4"); strings.Count(got, `"request_id": "a1"`) != 1 || !strings.Contains(got, `"request_id": "a1#2"`) {
		t.Errorf("merged to\n%s", got)
	}
}
