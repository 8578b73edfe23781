package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/format"
)

// recordsOf reads a run's records by row.
func recordsOf(t *testing.T, dir string) map[int]replay.Record {
	t.Helper()
	recorded, err := runfile.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer recorded.Close()
	records := map[int]replay.Record{}
	for rec, err := range recorded.Records() {
		if err != nil {
			t.Fatal(err)
		}
		records[rec.Row] = rec
	}
	if n, why := recorded.Damaged(); n > 0 {
		t.Errorf("%d damaged lines: %v", n, why)
	}
	return records
}

func rowsOfTrace(t *testing.T, path string, n int) []trace.Request {
	t.Helper()
	r, err := format.Open(path, format.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, err := trace.Collect(trace.Take(r.Requests(), n))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// serverCache models an unlimited server cache: it returns the cached tokens of
// a prompt made of a trace's blocks. It tracks how much of each block was sent,
// because an id may be a short tail in one row and whole in another.
type serverCache struct {
	traceBlock, serverBlock int
	known                   map[uint64]int // tokens of each block that were sent
}

func (c *serverCache) cached(r trace.Request) int {
	hit, going := 0, true
	for i, id := range r.HashIDs {
		here := min(c.traceBlock, r.InputLength-i*c.traceBlock)
		if here <= 0 {
			break
		}
		if going {
			shared := min(here, c.known[id])
			hit += shared
			going = shared == c.traceBlock
		}
		c.known[id] = max(c.known[id], here)
	}
	return min(hit, r.InputLength-1) / c.serverBlock * c.serverBlock
}

// One request at a time, token-id prompts: the server's cache hits match an
// independent model for every request, and prompt lengths match the trace.
func TestReplayHitsTheCacheAsTheTraceSays(t *testing.T) {
	t.Parallel()
	path, rows := anyTrace(t, 200)
	for _, serverBlock := range []string{"16", "48"} {
		t.Run("server_block="+serverBlock, func(t *testing.T) {
			t.Parallel()
			url := serveFast(t, "--engine-block-size", serverBlock)
			dir := t.TempDir()
			out := must(t, dir, "replay", path, "--url", url, "--limit", strconv.Itoa(rows), "--speedup", "100000", "--max-concurrency", "1", "--out", "run")
			if !strings.Contains(out, "Failed requests:                         0\n") {
				t.Errorf("failed requests:\n%s", out)
			}
			cache := serverCache{traceBlock: 512, serverBlock: map[string]int{"16": 16, "48": 48}[serverBlock], known: map[uint64]int{}}
			records := recordsOf(t, filepath.Join(dir, "run"))
			if len(records) != rows {
				t.Fatalf("%d records", len(records))
			}
			hits := 0
			for i, r := range rowsOfTrace(t, path, rows) {
				rec := records[i]
				want := cache.cached(r)
				if rec.Counts.Cached != trace.Some(want) || rec.Counts.Input != trace.Some(r.InputLength) || rec.Counts.Output != trace.Some(r.OutputLength) {
					t.Fatalf("row %d: cached %v, want %d; input %v, want %d; output %v, want %d", i,
						rec.Counts.Cached, want, rec.Counts.Input, r.InputLength, rec.Counts.Output, r.OutputLength)
				}
				hits += want
			}
			if hits == 0 {
				t.Error("the trace hits nothing: this shows nothing")
			}
		})
	}
}

const shortTrace = `{"timestamp": 5000, "input_length": 700, "output_length": 3, "hash_ids": [1, 2], "model": "x"}
{"timestamp": 5010, "input_length": 700, "output_length": 1, "hash_ids": [1, 3]}
{"timestamp": 5020, "input_length": 30, "output_length": 0}
{"timestamp": 5030, "input_length": 40, "output_length": 5, "session_id": "s"}
{"delay": 1, "input_length": 60, "output_length": 5, "session_id": "s"}
`

// The same run can be started in several ways; its folder has everything a
// later report and a later replay need.
func TestReplayForms(t *testing.T) {
	t.Parallel()
	url := serveFast(t)
	for name, flags := range map[string][]string{
		"completions, tokens": {},
		"completions, words":  {"--prompt", "words"},
		"chat":                {"--endpoint", "chat"},
		"url with /v1":        {"--url", url + "/v1/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "t.jsonl", shortTrace)
			args := append([]string{"replay", "--url", url, "t.jsonl", "--salt", name, "--out", "run"}, flags...)
			out := must(t, dir, args...)
			if !strings.Contains(out, "Successful requests:                     5\n") {
				t.Fatalf("got\n%s", out)
			}
			records := recordsOf(t, dir+"/run")
			cached := 0
			for i, want := range []struct{ input, output int }{{700, 3}, {700, 1}, {30, 1}, {40, 5}, {60, 5}} {
				c := records[i].Counts
				if c.Input.Value != want.input || c.Output.Value != want.output {
					t.Errorf("row %d: %+v, want %+v", i, c, want)
				}
				cached += c.Cached.Value
			}
			// The first two share a block, in any order of arrival.
			if cached != 512 {
				t.Errorf("%d cached tokens, want 512", cached)
			}
			if first := records[0]; first.Due != 0 || string(first.Extra) != `{"model": "x"}` {
				t.Errorf("the first row is due at %v with %s", first.Due, first.Extra)
			}
			if turn := records[4]; turn.Due-records[3].Done != 1e6 {
				t.Errorf("the second turn is due %v after the first ended", turn.Due-records[3].Done)
			}

			if again := must(t, dir, "report", "run"); !strings.HasPrefix(out, again) {
				t.Errorf("report prints\n%s\nwhere replay printed\n%s", again, out)
			}
			var summary map[string]any
			text, err := os.ReadFile(dir + "/run/summary.json")
			if err != nil || json.Unmarshal(text, &summary) != nil || summary["completed"] != 5.0 || summary["total_input_tokens"] != 1530.0 {
				t.Errorf("summary.json: %v\n%s", err, text)
			}
			if asJSON := must(t, dir, "report", "--json", "run"); !json.Valid([]byte(asJSON)) {
				t.Errorf("report --json prints\n%s", asJSON)
			}
			// Lines are in the order in which requests ended.
			must(t, dir, "convert", "run/requests.jsonl", "--sort", "-o", "sorted.jsonl")
			if again := must(t, dir, "replay", "sorted.jsonl", "--url", url, "--out", "again"); !strings.Contains(again, "Successful requests:                     5\n") {
				t.Errorf("a result file replayed:\n%s", again)
			}
		})
	}
}

func TestRunSaysHowToRepeatIt(t *testing.T) {
	t.Parallel()
	url := serveFast(t)
	dir := t.TempDir()
	write(t, dir, "t.jsonl", shortTrace)
	run := func(out string, flags ...string) runfile.Run {
		must(t, dir, append([]string{"replay", "t.jsonl", "--url", url, "--out", out}, flags...)...)
		text := read(t, filepath.Join(dir, out, runfile.RunFile))
		if strings.Contains(string(text), "hush") {
			t.Errorf("a secret is in run.json:\n%s", text)
		}
		var r runfile.Run
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	a := run("a", "--seed", "7", "--header", "X-Key: hush", "--header=Y: hush, too")
	b := run("b", "--seed", "7")
	other := run("c", "--seed", "8")
	fast := run("d", "--seed", "7", "--speedup", "2")
	if a.Prompts != b.Prompts || a.Schedule != b.Schedule || a.Trace.SHA256 != b.Trace.SHA256 {
		t.Errorf("two equal runs differ:\n%+v\n%+v", a, b)
	}
	if a.Prompts == other.Prompts || a.Schedule != other.Schedule {
		t.Error("the seed chooses the prompts and nothing else")
	}
	if a.Schedule == fast.Schedule || a.Prompts != fast.Prompts {
		t.Error("the speed changes the schedule and nothing else")
	}
	if a.Rows != 5 || a.Sent != 5 || a.NotSent != 0 || a.Ended.IsZero() || a.Target.Simulated || a.Trace.BlockSize != 512 || len(a.Notes) == 0 {
		t.Errorf("got %+v", a)
	}
}
