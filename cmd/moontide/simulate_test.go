package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"moontide/replay/runfile"
)

// A simulation is a run like any other, and is labelled as simulated.
func TestSimulate(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"one engine":       nil,
		"round-robin":      {"--engines", "4"},
		"prefix":           {"--engines", "4", "--routing", "prefix", "--max-concurrency", "8"},
		"disaggregated":    {"--prefill-engines", "2", "--decode-engines", "2", "--routing", "least-loaded", "--speedup", "2"},
		"out of step":      {"--phased-tpot", "10ms", "--max-num-seqs", "20000"},
		"generated cached": {"--cache-generated", "--engine-block-size", "48"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out := must(t, dir, append([]string{"simulate", sample(t), "--out", "run"}, flags...)...)
			for _, want := range []string{"Successful requests:                     100\n", "Simulated: these numbers come from simulated engines in virtual time", "Note: simulated in virtual time: ", "client lag is 0", "Verdict: VALID"} {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			if again := must(t, dir, "report", "run"); !strings.HasPrefix(out, again) {
				t.Errorf("report prints\n%s\nwhere simulate printed\n%s", again, out)
			}
			if got, want := files(t, filepath.Join(dir, "run")), []string{"report.html", "requests.jsonl", "run.json", "summary.json"}; !slices.Equal(got, want) {
				t.Errorf("files %v", got)
			}
			rows := rowsOfTrace(t, sample(t), 100)
			for i, rec := range recordsOf(t, filepath.Join(dir, "run")) {
				c := rec.Counts
				if c.Input.Value != rows[i].InputLength || c.Output.Value != rows[i].OutputLength || !c.Cached.Set || rec.Chunks != c.Output.Value {
					t.Fatalf("row %d: %+v, %d chunks", i, c, rec.Chunks)
				}
				if rec.Sent.Value != rec.Ready || rec.First.Value <= rec.Sent.Value || rec.Last.Value != rec.Done {
					t.Fatalf("row %d: %+v", i, rec)
				}
			}

			must(t, dir, append([]string{"simulate", sample(t), "--out", "again"}, flags...)...)
			a := read(t, filepath.Join(dir, "run", runfile.RequestsFile))
			if b, err := os.ReadFile(filepath.Join(dir, "again", runfile.RequestsFile)); err != nil || string(a) != string(b) {
				t.Errorf("the same command gives other bytes: %v", err)
			}
		})
	}
}

// In virtual time and over HTTP, the same engine has the same cached tokens for
// every prompt, even if the blocks of engine and trace differ and the cache is
// too small.
func TestSimulateHitsWhatServeDoes(t *testing.T) {
	t.Parallel()
	path, most := anyTrace(t, 300)
	for _, engine := range [][]string{
		{"--engine-block-size", "16", "--num-gpu-blocks", "20000"},
		{"--engine-block-size", "48", "--num-gpu-blocks", "8000"},
	} {
		t.Run(strings.Join(engine, " "), func(t *testing.T) {
			t.Parallel()
			rows := strconv.Itoa(most)
			dir := t.TempDir()
			url := serveFast(t, engine...)
			must(t, dir, "replay", path, "--url", url, "--limit", rows, "--speedup", "100000", "--max-concurrency", "1", "--out", "http")
			must(t, dir, append([]string{"simulate", path, "--limit", rows, "--max-concurrency", "1", "--out", "virtual"}, engine...)...)
			http, virtual := recordsOf(t, filepath.Join(dir, "http")), recordsOf(t, filepath.Join(dir, "virtual"))
			hits, free := 0, 0
			for i, rec := range http {
				if got, want := virtual[i].Counts, rec.Counts; got != want {
					t.Fatalf("row %d: %+v in virtual time, %+v over HTTP", i, got, want)
				}
				hits += rec.Counts.Cached.Value
			}
			must(t, dir, append([]string{"simulate", path, "--limit", rows, "--max-concurrency", "1", "--out", "roomy"}, engine[0], engine[1], "--num-gpu-blocks", "1000000")...)
			for _, rec := range recordsOf(t, filepath.Join(dir, "roomy")) {
				free += rec.Counts.Cached.Value
			}
			if hits == 0 || hits >= free {
				t.Errorf("%d tokens are hit, %d with a large cache: this shows nothing", hits, free)
			}
		})
	}
}
