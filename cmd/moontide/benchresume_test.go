package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"moontide/replay/runfile"
	"moontide/trace"
)

// A complete run is not repeated, an incomplete one is, with other prompts, and
// levels can be added. Conflicting flags are rejected.
func TestBenchGoesOn(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t), t.TempDir()
	sweep := func(args ...string) []string {
		return append([]string{"--isl", "50", "--osl", "3", "--url", url, "--out", "sweep", "--verdict", "lag=1h"}, args...)
	}
	benched(t, dir, sweep("--max-concurrency", "1,2")...)
	kept := read(t, filepath.Join(dir, "sweep", "concurrency-1", runfile.RunFile))
	if err := os.Remove(filepath.Join(dir, "sweep", "concurrency-2", runfile.SummaryFile)); err != nil { // as after a kill
		t.Fatal(err)
	}
	r := benched(t, dir, sweep("--max-concurrency", "1,2,4", "--output", "markdown")...)
	for _, want := range []string{"\n| 1", "\n| 2", "\n| 4"} {
		if strings.Count(r.out, want) != 1 {
			t.Errorf("no row %q in\n%s", want, r.out)
		}
	}
	want := []string{"concurrency-1", "concurrency-2", "concurrency-2-attempt-2", "concurrency-4", "set.json"}
	if got := folders(t, filepath.Join(dir, "sweep")); !slices.Equal(got, want) {
		t.Errorf("the folder holds %v", got)
	}
	if !bytes.Equal(kept, read(t, filepath.Join(dir, "sweep", "concurrency-1", runfile.RunFile))) {
		t.Error("a run that was there was run again")
	}
	first, again := runOfFolder(t, filepath.Join(dir, "sweep", "concurrency-2")), runOfFolder(t, filepath.Join(dir, "sweep", "concurrency-2-attempt-2"))
	if first.Prompts == again.Prompts || first.Trace.SHA256 != again.Trace.SHA256 || first.Schedule != again.Schedule {
		t.Errorf("the second attempt is not the same with other prompts:\n%+v\n%+v", first, again)
	}
	for _, test := range []struct {
		want string
		args []string
	}{
		{"sent other requests", sweep("--max-concurrency", "1", "--limit", "11")},
		{"the run in " + filepath.Join("sweep", "concurrency-2-attempt-2") + " sent other requests", sweep("--max-concurrency", "8,1,2", "--limit", "10")},
		{"seed was not set, is 1", sweep("--max-concurrency", "1", "--seed", "1")},
		{"osl was 3, is 4", append(sweep("--max-concurrency", "1"), "--osl", "4")},
	} {
		r := try(t, dir, "", append([]string{"bench"}, test.args...)...)
		if r.status != exitMisused || r.out != "" || !strings.Contains(r.err, test.want) {
			t.Errorf("%v: exit status %d, %s%s", test.args, r.status, r.out, r.err)
		}
	}
	if got := folders(t, filepath.Join(dir, "sweep")); !slices.Equal(got, want) {
		t.Errorf("what was refused left %v", got)
	}
}

// A run spoiled by the client is excluded from the table: resuming repeats it,
// with other prompts, until one is good.
func TestBenchRunsInvalidAgain(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t), t.TempDir()
	sweep := []string{"--isl", "50", "--osl", "3", "--url", url, "--out", "sweep", "--verdict", "lag=1h", "--max-concurrency", "1,2"}
	benched(t, dir, sweep...)
	path := filepath.Join(dir, "sweep", "concurrency-2", runfile.SummaryFile)
	verdict := regexp.MustCompile(`"verdict": "[A-Z]+"`)
	write(t, "", path, string(verdict.ReplaceAll(read(t, path), []byte(`"verdict": "INVALID"`))))
	r := benched(t, dir, sweep...)
	if want := "recording in " + filepath.Join("sweep", "concurrency-2-attempt-2"); !strings.Contains(r.err, want) || strings.Count(r.err, "already done") != 1 {
		t.Errorf("%s", r.err)
	}
	for row, rec := range recordsOf(t, filepath.Join(dir, "sweep", "concurrency-2-attempt-2")) {
		if rec.Counts.Cached != trace.Some(0) {
			t.Errorf("row %d of the second attempt: %v cached", row, rec.Counts.Cached)
		}
	}
	if r := benched(t, dir, sweep...); strings.Count(r.err, "already done") != 2 {
		t.Errorf("a good one is run again:\n%s", r.err)
	}
}

// An interrupt ends the sweep after the requests in flight and shows the
// results; the same command resumes it.
func TestBenchInterrupted(t *testing.T) {
	t.Parallel()
	s, dir := newSlowEndpoint(t), t.TempDir()
	args := []string{"bench", "--isl", "20", "--osl", "2", "--max-concurrency", "1,2", "--limit", "3", "--url", s.URL, "--out", "sweep", "--verdict", "lag=1h"}
	cmd := moontide(dir, args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	talk := begin(t, cmd)
	for range 3 { // of the first level
		<-s.got
		s.release <- struct{}{}
	}
	<-s.got // the first of the second
	<-s.got
	interrupt(t, cmd)
	talk.await(t, interrupted)
	s.release <- struct{}{}
	s.release <- struct{}{}
	said := talk.end(cmd)
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(said, "concurrency 2: the run was stopped") || !strings.Contains(said, "repeat the command with --out sweep") {
		t.Fatalf("exit status %d\n%s%s", cmd.ProcessState.ExitCode(), &out, said)
	}
	if !strings.Contains(out.String(), "the worst of 1 run") {
		t.Errorf("what was measured is not shown:\n%s", &out)
	}
	const missing = "the set in sweep did not end"
	if r := try(t, dir, "", "report", "sweep"); r.status != exitFailed || !strings.Contains(r.err, "the run in "+filepath.Join("sweep", "concurrency-2")+" did not end") || !strings.Contains(r.out, missing) {
		t.Errorf("report: exit status %d\n%s%s", r.status, r.out, r.err)
	}
	close(s.release)
	r := benched(t, dir, args[1:]...)
	if r := try(t, dir, "", "report", "sweep"); strings.Contains(r.out+r.err, missing) {
		t.Errorf("report: %s", r.err)
	}
	if !strings.Contains(r.out, "the worst of 2 runs") || !strings.Contains(r.err, "already done: "+filepath.Join("sweep", "concurrency-1")) {
		t.Errorf("%s%s", r.out, r.err)
	}
	if got := len(recordsOf(t, filepath.Join(dir, "sweep", "concurrency-2-attempt-2"))); got != 3 {
		t.Errorf("%d records of the second attempt", got)
	}
}

// A repeated sweep finds its own prompts in the server's cache, which is
// reported with a remedy.
func TestBenchRepeated(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t), t.TempDir()
	const hint = "the server's cache has prompts of an earlier run; use another --salt"
	for _, test := range []struct {
		out, salt string
		warm      bool
	}{{"first", "x", false}, {"again", "x", true}, {"other", "y", false}} {
		r := benched(t, dir, "--isl", "100", "--osl", "2", "--max-concurrency", "1", "--limit", "3", "--url", url, "--out", test.out, "--salt", test.salt)
		if strings.Contains(r.err, hint) != test.warm {
			t.Errorf("%s with salt %s:\n%s", test.out, test.salt, r.err)
		}
	}
}
