package main

import (
	"encoding/json"
	"slices"
	"testing"

	"moontide/trace"
	"moontide/trace/format"
)

// shared writes a trace of prompts of 1 to 6 blocks with a common beginning.
func shared(t *testing.T, dir, name string) {
	t.Helper()
	var rows []byte
	for i := range uint64(60) {
		ids := []uint64{0, 1, 2, 3, 4}[:1+i%5]
		if i%2 == 0 {
			ids = append(slices.Clone(ids), 100+i)
		}
		rows = append(format.AppendRow(rows, trace.Request{
			Timestamp: trace.Some(float64(i / 3 * 1000)), InputLength: len(ids) * 512, OutputLength: 10 + int(i), HashIDs: ids,
		}), '\n')
	}
	write(t, dir, name, string(rows))
}

// synth | analyze - is one pipe.
func TestSynthIntoAnalyze(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shared(t, dir, "t.jsonl")
	out := must(t, dir, "synth", "--method", "tree", "--from", "t.jsonl", "-n", "500", "--prefix-len-multiplier", "2", "-o", "-")
	r := try(t, dir, out, "analyze", "-", "--json")
	var got struct {
		Requests int
		Context  struct {
			Declared float64 `json:"declared_mean"`
		}
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || got.Requests != 500 || got.Context.Declared < 1024 {
		t.Errorf("%+v, %v\n%s", got, err, r.err)
	}
}
