package main

import (
	"path/filepath"
	"strings"
	"testing"

	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/trace"
)

// A trace has the same tokens in every API: ISL, OSL and cached tokens of each
// request are exact from the client to the endpoint and back.
func TestEveryAPI(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", strings.Repeat(`{"timestamp":0,"input_length":100,"output_length":7,"hash_ids":[1,2]}`+"\n", 5))
	for _, endpoint := range openai.Endpoints() {
		url := serveFast(t, "--reasoning-tokens", "2")
		r := try(t, dir, "", "replay", "t.jsonl", "--url", url, "--endpoint", endpoint, "--block-size", "64", "--max-concurrency", "1", "--out", endpoint)
		if !r.measured() {
			t.Errorf("%s: exit status %d\n%s", endpoint, r.status, r.err)
			continue
		}
		for row, rec := range recordsOf(t, filepath.Join(dir, endpoint)) {
			cached := 0
			if row > 0 {
				cached = 96 // whole blocks of 16 tokens
			}
			if c := rec.Counts; c.Input != trace.Some(100) || c.Output != trace.Some(7) || c.Cached != trace.Some(cached) || rec.Chunks != 7 {
				t.Errorf("%s: row %d: counts %+v, want 100, 7 and %d; %d chunks", endpoint, row, c, cached, rec.Chunks)
			}
		}
	}
}

// An endpoint that refuses parameters is used without them, and the run says what
// that costs.
func TestRefusedParameters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", strings.Repeat(`{"timestamp":0,"input_length":20,"output_length":3}`+"\n", 3))
	for refused, tc := range map[string]struct{ accepted, note string }{
		"max_tokens":                       {"max_completion_tokens ignore_eos min_tokens stream_options continuous_usage_stats token ids", "max_completion_tokens is sent"},
		"stream_options":                   {"max_tokens ignore_eos min_tokens token ids", "the endpoint reports no usage"},
		"token_ids":                        {"max_tokens ignore_eos min_tokens stream_options continuous_usage_stats", "takes no token ids"},
		"completions":                      {"max_tokens ignore_eos min_tokens stream_options continuous_usage_stats", "has no completions API"},
		"ignore_eos,min_tokens,max_tokens": {"max_completion_tokens stream_options continuous_usage_stats token ids", "refuses ignore_eos"},
	} {
		out := filepath.Join(dir, refused)
		r := try(t, dir, "", "replay", "t.jsonl", "--url", serveFast(t, "--refuse", refused), "--out", out)
		if !r.measured() || !strings.Contains(unwrapped(r.err), tc.note) {
			t.Errorf("%s: exit status %d, want a note %q\n%s", refused, r.status, tc.note, r.err)
			continue
		}
		run, err := runfile.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		run.Close()
		if got := strings.Join(run.Run.Target.Accepted, " "); got != tc.accepted {
			t.Errorf("%s: accepted %q, want %q", refused, got, tc.accepted)
		}
		for row, rec := range recordsOf(t, out) {
			if rec.Class != "" || rec.Chunks != 3 {
				t.Errorf("%s: row %d: %q, %d chunks", refused, row, rec.Error, rec.Chunks)
			}
		}
	}
}
