package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moontide/replay"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/trace"
)

// benched runs a sweep that must complete. A busy machine may make it INVALID.
func benched(t *testing.T, dir string, args ...string) result {
	t.Helper()
	r := try(t, dir, "", append([]string{"bench"}, args...)...)
	if !r.measured() {
		t.Fatalf("moontide bench %s: exit status %d\n%s%s", strings.Join(args, " "), r.status, r.out, r.err)
	}
	return r
}

func runOfFolder(t *testing.T, dir string) (run runfile.Run) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, runfile.RunFile))
	if err == nil {
		err = json.Unmarshal(text, &run)
	}
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// folders returns the names in a sweep's folder.
func folders(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Each level is a separate closed loop: ten requests of the given shape per
// request in flight, never more at once, and no prompt is repeated between
// levels.
func TestBenchConcurrency(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t), t.TempDir()
	r := benched(t, dir, "--isl", "100", "--osl", "5", "--max-concurrency", "1,3", "--url", url, "--out", "sweep", "--output", "png=sweep.png", "--output", "csv")
	rows, err := csv.NewReader(strings.NewReader(r.out)).ReadAll()
	if err != nil || len(rows) != 3 || rows[0][0] != "Concurrency" || rows[1][0] != "1" || rows[2][0] != "3" || rows[2][9] != "30" {
		t.Fatalf("%v in\n%s", err, r.out)
	}
	if got, want := folders(t, filepath.Join(dir, "sweep")), []string{"concurrency-1", "concurrency-3", "set.json"}; !slices.Equal(got, want) {
		t.Errorf("the folder holds %v", got)
	}
	all := try(t, dir, "", "report", "sweep/concurrency-1", "sweep/concurrency-3", "sweep/set.json", "--output", "csv") // a shell's sweep/*
	if !all.measured() || strings.Count(all.out, "\n") != 3 {
		t.Errorf("report of the sweep: exit status %d, %s%s", all.status, all.err, all.out)
	}
	if again := try(t, dir, "", "report", "sweep", "--output", "csv"); !again.measured() || again.out != r.out {
		t.Errorf("report of the folder: exit status %d, %s%swant\n%s", again.status, again.err, again.out, r.out)
	}
	prompts := map[string]bool{}
	for _, n := range []int{1, 3} {
		folder := filepath.Join(dir, "sweep", fmt.Sprintf("concurrency-%d", n))
		run, records := runOfFolder(t, folder), recordsOf(t, folder)
		if run.Settings.MaxConcurrency != n || !run.Settings.Closed || run.Rows != 10*n || len(records) != 10*n {
			t.Errorf("concurrency %d: %+v, %d records", n, run, len(records))
		}
		prompts[run.Prompts] = true
		for row, rec := range records {
			if rec.InputLength != 100 || rec.Counts.Output != trace.Some(5) || rec.Counts.Cached != trace.Some(0) {
				t.Errorf("concurrency %d, row %d: %+v", n, row, rec)
			}
		}
		if most := mostInFlight(records); most > n {
			t.Errorf("%d in flight, of %d", most, n)
		}
	}
	if len(prompts) != 2 {
		t.Error("both levels have the same prompts")
	}
	if _, err := png.Decode(bytes.NewReader(read(t, filepath.Join(dir, "sweep.png")))); err != nil {
		t.Error(err)
	}
}

func mostInFlight(records map[int]replay.Record) (most int) {
	for _, rec := range records {
		n := 0
		for _, other := range records {
			if other.Ready <= rec.Ready && rec.Ready < other.Done {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// Each deployment has a table, and there is a combined one with ratios.
func TestBenchComparesDeployments(t *testing.T) {
	t.Parallel()
	base, slow, dir := serveFast(t), serveFast(t, "--prefill-per-token", "100us", "--step-base", "1ms"), t.TempDir()
	r := benched(t, dir, "--isl", "100", "--osl", "5", "--max-concurrency", "1,2", "--limit", "4", "--url", "base="+base, "--url", "slow="+slow, "--out", "sweep")
	for _, want := range []string{"\nbase\n", "\nslow, with the ratio to base\n", "x, ", "the worst of 4 runs"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
	want := []string{"base-concurrency-1", "base-concurrency-2", "set.json", "slow-concurrency-1", "slow-concurrency-2"}
	if got := folders(t, filepath.Join(dir, "sweep")); !slices.Equal(got, want) {
		t.Errorf("the folder holds %v", got)
	}
	for label, url := range map[string]string{"base": base, "slow": slow} {
		if run := runOfFolder(t, filepath.Join(dir, "sweep", label+"-concurrency-1")); !strings.HasPrefix(run.Target.URL, url) {
			t.Errorf("%s went to %s, not %s", label, run.Target.URL, url)
		}
	}
}

// A failing sweep reports the errors of its requests, and other flags may be
// tried in the same folder until it contains a run.
func TestBenchSaysWhatFailed(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t, "--max-model-len", "50"), t.TempDir()
	shape := []string{"bench", "--osl", "2", "--max-concurrency", "1", "--limit", "2", "--out", "sweep", "--url", url, "--isl"}
	r := try(t, dir, "", append(shape, "30", "--model", "none")...)
	if r.status != exitFailed || !strings.Contains(r.err, `"none" does not exist`) {
		t.Errorf("exit status %d\n%s", r.status, r.err)
	}
	r = try(t, dir, "", append(shape, "30", "--dataset", "x")...)
	if r.status != exitMisused || !strings.Contains(r.err, "--dataset needs the model's own --tokenizer") || strings.Contains(r.err, "to continue") {
		t.Errorf("exit status %d\n%s", r.status, r.err)
	}
	r = try(t, dir, "", append(shape, "100")...)
	if r.status != exitFailed || !strings.Contains(r.err, "2 failed: status 2 (HTTP status 400: This model's maximum context length is 50") || !strings.Contains(r.err, "no request succeeded") || r.out != "" {
		t.Errorf("exit status %d\n%s%s", r.status, r.err, r.out)
	}
	if r = try(t, dir, "", append(shape, "30")...); r.status != exitMisused || !strings.Contains(r.err, "a set with other settings: isl was 100, is 30") {
		t.Errorf("exit status %d\n%s", r.status, r.err)
	}
}

// A saturation test at one rate with a ceiling: a single run is shown as by
// replay, and as a table of one row.
func TestBenchRate(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t, "--step-base", "5ms"), t.TempDir()
	r := benched(t, dir, "--header", "X-One: a, b", "--isl", "50", "--osl", "10", "--rate", "200", "--arrival", "constant", "--max-concurrency", "4", "--limit", "40",
		"--warmup-time", "20ms", "--cooldown-time", "10ms", "--url", url, "--out", "sweep")
	for _, want := range []string{
		"============ Serving Benchmark Result ============\n",
		"Maximum request concurrency:             4\nRequest rate configured (RPS):           200.00\n",
		"Request Rate",
		"ISL 50, OSL 10, arrival constant, model sim\n",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
	folder := filepath.Join(dir, "sweep", "rate-200")
	run, records := runOfFolder(t, folder), recordsOf(t, folder)
	if run.Settings.Closed || run.Settings.DrawnRate() != 200 || run.Trace.DurationMS != 195 || run.Settings.Window != (runfile.Window{WarmupSeconds: 0.02, CooldownSeconds: 0.01}) || len(records) != 40 {
		t.Errorf("%+v, %d records", run, len(records))
	}
	if header := run.Settings.Client.Headers; len(header) != 1 || header[0] != (openai.Header{Name: "X-One", Value: "***"}) {
		t.Errorf("a run has the headers %q", header)
	}
	held := 0
	for _, rec := range records {
		if rec.Ready > rec.Due {
			held++
		}
	}
	if held == 0 || mostInFlight(records) > 4 {
		t.Errorf("%d of 40 waited at the ceiling, %d were in flight", held, mostInFlight(records))
	}
}

// A sweep in virtual time gives what moontide simulate gives for each level, and
// a repeated sweep finds its runs.
func TestBenchInVirtualTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	engines := []string{"--prefill-engines", "2", "--decode-engines", "1", "--set", "step-base=20ms"}
	sweep := append([]string{"bench", "--isl", "3000", "--osl", "150", "--max-concurrency", "4,64", "--limit", "200", "--virtual", "--out", "sweep", "--output", "csv"}, engines...)
	first := try(t, dir, "", sweep...)
	must(t, dir, "synth", "--isl", "3000", "--osl", "150", "-n", "200", "-o", "t.jsonl")
	must(t, dir, append([]string{"simulate", "t.jsonl", "--closed", "--max-concurrency", "64", "--out", "alone"}, engines...)...)
	alone := recordsOf(t, filepath.Join(dir, "alone"))
	for row, rec := range recordsOf(t, filepath.Join(dir, "sweep", "concurrency-64")) {
		if of := alone[row]; rec.Ready != of.Ready || rec.First != of.First || rec.Done != of.Done {
			t.Errorf("row %d: %+v, alone %+v", row, rec, of)
		}
	}
	again := try(t, dir, "", sweep...)
	if first.status != exitDone || again.out != first.out || !strings.Contains(again.err, "already done: sweep/concurrency-64") {
		t.Errorf("again\n%s%swant\n%s", again.err, again.out, first.out)
	}
}
