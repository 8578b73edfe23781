package main

import (
	"encoding/json"
	"strings"
	"testing"
)

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
