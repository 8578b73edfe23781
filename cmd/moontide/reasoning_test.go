package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Every report separates reasoning from visible text. Most answers have 30 tokens,
// 20 of them reasoning; one has 5, all reasoning. Merging runs keeps the times.
func TestReasoning(t *testing.T) {
	t.Parallel()
	const rows, reasoning, osl, short = 6, 20, 30, 5
	dir, rowsText := t.TempDir(), ""
	for i := range rows {
		length := osl
		if i == rows-1 {
			length = short
		}
		rowsText += fmt.Sprintf(`{"timestamp": 0, "input_length": 16, "output_length": %d, "hash_ids": [%d]}`+"\n", length, i)
	}
	write(t, dir, "trace.jsonl", rowsText)
	url := serveFast(t, "--step-base", "5ms", "--reasoning-tokens", fmt.Sprint(reasoning))
	replay := []string{"replay", "trace.jsonl", "--url", url, "--endpoint", "chat", "--block-size", "16", "--max-lag", "1m"}
	out := must(t, dir, append(replay, "--out", "run", "--fail-if", "max_ttfvt>1h")...)
	for _, want := range []string{"Mean TTFVT (ms):", "Mean reasoning length (tokens):          17.50", "Note: 1 answer has no visible text", "Gates: PASS"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	must(t, dir, append(replay, "--out", "again")...)
	for runs, args := range map[float64][]string{1: {"run"}, 2: {"run", "again", "--merge"}} {
		var summary struct {
			TTFT     float64 `json:"mean_ttft_ms"`
			Moontide struct {
				TTFVT     float64 `json:"mean_ttfvt_ms"`
				Only      float64 `json:"reasoning_only"`
				Reasoning float64 `json:"mean_reasoning_tokens"`
				Goodput   struct{ Good float64 }
			}
		}
		text := must(t, dir, append([]string{"report", "--json", "--goodput", "ttfo:3600000"}, args...)...)
		if err := json.Unmarshal([]byte(text), &summary); err != nil {
			t.Fatal(err)
		}
		if m := summary.Moontide; m.TTFVT <= summary.TTFT || m.Only != runs || m.Reasoning != 17.5 || m.Goodput.Good != runs*(rows-1) {
			t.Errorf("%q: TTFT %v ms, %+v", args, summary.TTFT, m)
		}
	}
}
