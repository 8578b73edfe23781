package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moontide/replay"
	"moontide/trace"
)

// rowsOfAgents returns a trace of three agents, each with two sub-agents that run in
// parallel and join.
func rowsOfAgents() string {
	var text strings.Builder
	row := func(format string, args ...any) {
		fmt.Fprintf(&text, `{"input_length": 40, "output_length": 4, `+format+"}\n", args...)
	}
	for i := range 3 {
		row(`"timestamp": %d, "session_id": "a%d", "request_id": "%d.1"`, 5*i, i, i)
	}
	for i := range 3 {
		row(`"session_id": "a%d/x", "request_id": "%d.2", "after": ["%d.1"], "delay": 2, "delay_kind": "tool"`, i, i, i)
		row(`"session_id": "a%d/y", "request_id": "%d.3", "after": ["%d.1"], "delay": 4, "delay_kind": "tool"`, i, i, i)
		row(`"session_id": "a%d", "request_id": "%d.4", "after": ["%d.2", "%d.3"], "delay": 3`, i, i, i, i)
		row(`"session_id": "a%d", "delay": 1, "delay_kind": "think"`, i)
	}
	return text.String()
}

// waited fails if a request was not sent its delay after the last end of what it
// waits for.
func waited(t *testing.T, dir string) (ends map[string]time.Duration) {
	t.Helper()
	ends = map[string]time.Duration{}
	records := recordsOf(t, dir)
	for _, rec := range records {
		if rec.Class == replay.OK {
			ends[rec.ID] = rec.Done
		}
		ends[rec.SessionID] = max(ends[rec.SessionID], rec.Done)
	}
	for row, rec := range records {
		var last time.Duration
		for _, id := range rec.After {
			end, answered := ends[id]
			if !answered {
				t.Errorf("row %d was sent although %q failed or was not sent", row, id)
			}
			last = max(last, end)
		}
		if len(rec.After) > 0 && rec.Due < last+replay.Milliseconds(rec.Delay.Value) {
			t.Errorf("row %d was due at %v, %v ms after %v", row, rec.Due, rec.Delay.Value, last)
		}
	}
	return ends
}

// A run of agents that failed and stopped resumes where it was: sub-agents join, and
// what waits for the failed request is not sent.
func TestStoppedAgentsGoOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", rowsOfAgents())
	endpoint := newMoodyEndpoint(t, func(probe bool, n int) (int, string) {
		if !probe && n == 5 {
			return http.StatusInternalServerError, ""
		}
		return http.StatusOK, ""
	})
	try(t, dir, "", "replay", "t.jsonl", "--url", endpoint.URL, "--abort-after-errors", "1", "--max-concurrency", "1", "--out", "run")
	before := len(recordsOf(t, dir+"/run"))
	r := try(t, dir, "", "replay", "t.jsonl", "--resume", "run")
	run, records := runOfFolder(t, dir+"/run"), recordsOf(t, dir+"/run")
	if !r.measured() || before >= 12 || len(records) <= before || run.Sent+run.Skipped != 15 || run.Skipped == 0 || run.Stopped {
		t.Errorf("exit status %d, %d records, then %d, %+v\n%s", r.status, before, len(records), run, r.err)
	}
	waited(t, dir+"/run")
}

func TestSessionLimitFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", rowsOfAgents())
	for _, verb := range []string{"simulate", "replay"} {
		out := verb + "-one"
		r := try(t, dir, "", verb, "t.jsonl", "--closed", "--max-sessions", "1", "--out", out)
		if !r.measured() {
			t.Fatalf("%s: exit status %d: %s", verb, r.status, r.err)
		}
		waited(t, dir+"/"+out)
		type span struct{ from, to time.Duration }
		spans := map[string]span{}
		for _, rec := range recordsOf(t, dir+"/"+out) {
			agent, _, _ := strings.Cut(rec.SessionID, "/")
			s, known := spans[agent]
			if !known || rec.Sent.Value < s.from {
				s.from = rec.Sent.Value
			}
			s.to = max(s.to, rec.Done)
			spans[agent] = s
		}
		for i := range 2 {
			if before, after := spans[fmt.Sprint("a", i)], spans[fmt.Sprint("a", i+1)]; after.from < before.to {
				t.Errorf("%s: agent %d began at %v, before %v, when the one before it ended", verb, i+1, after.from, before.to)
			}
		}
	}
	must(t, dir, "simulate", "t.jsonl", "--set", "max-turns=2", "--out", "turns")
	if run := runOfFolder(t, dir+"/turns"); run.Sent != 12 || run.Cut != 3 || run.NotSent != 3 || run.Stopped || run.Settings.Sessions.Turns != 2 {
		t.Errorf("%+v", run)
	}
	if r := try(t, dir, "", "simulate", "t.jsonl", "--cancel-after", "1ms", "--out", "cancelled"); r.status != exitFailed {
		t.Errorf("no request was completed: exit status %d", r.status)
	}
	records := recordsOf(t, dir+"/cancelled")
	if run := runOfFolder(t, dir+"/cancelled"); len(records) != 3 || run.Cut != 12 || run.Settings.Client.CancelAfter != time.Millisecond {
		t.Errorf("%d records, %+v", len(records), run)
	}
	for row, rec := range records {
		if rec.Class != replay.Abandoned || rec.Done-rec.Sent.Value != time.Millisecond {
			t.Errorf("row %d ended as %q, %v after it was sent", row, rec.Class, rec.Done-rec.Sent.Value)
		}
	}
}

// With live answers, a later prompt continues the real answer to the turn before.
func TestSimulateLiveAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", `{"timestamp": 0, "input_length": 100, "output_length": 61, "hash_ids": [1, 2, 3, 4], "session_id": "s"}
{"delay": 5, "input_length": 220, "output_length": 3, "hash_ids": [1, 2, 3, 5, 6, 7, 8], "session_id": "s"}
`)
	for _, c := range []struct {
		flags  string
		cached int
	}{
		{"", 96}, // floor(100/16)*16, and the partial block of the trace is another
		{"--answers live", 96},
		{"--answers live --cache-generated", 160}, // floor((100+61-1)/16)*16
		{"--answers trace --cache-generated", 96},
	} {
		out := strings.ReplaceAll("run"+c.flags, " ", "")
		must(t, dir, append([]string{"simulate", "t.jsonl", "--block-size", "32", "--out", out}, strings.Fields(c.flags)...)...)
		rec := recordsOf(t, dir+"/"+out)[1]
		live := strings.Contains(c.flags, "live")
		if rec.Counts.Cached != trace.Some(c.cached) || rec.Base.Row.Set != live || live && rec.Base.Answer.Tokens != 61 {
			t.Errorf("%s: cached %+v, base %+v, want %d tokens", c.flags, rec.Counts.Cached, rec.Base, c.cached)
		}
	}
}

// Agents that are drawn from others wait for each other like these when they are replayed.
func TestDrawnAgentsReplay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", rowsOfAgents())
	must(t, dir, "fit", "t.jsonl", "-o", "model")
	must(t, dir, "synth", "--from", "model", "-n", "60", "--seed", "1", "-o", "drawn.jsonl")
	if text := must(t, dir, "check", "drawn.jsonl"); !strings.Contains(text, "can be replayed faithfully") {
		t.Error(text)
	}
	waits := 0
	for _, row := range rowsOfTrace(t, filepath.Join(dir, "drawn.jsonl"), 1000) {
		waits += len(row.After)
	}
	must(t, dir, "simulate", "drawn.jsonl", "--out", "run")
	if ends := waited(t, filepath.Join(dir, "run")); waits == 0 || len(ends) < 60 {
		t.Errorf("%d requests wait for others, %d requests and sessions ended", waits, len(ends))
	}
}
