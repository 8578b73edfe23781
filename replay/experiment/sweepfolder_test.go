package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"moontide/replay/runfile"
	"moontide/trace/atomicfile"
)

// openAndClose opens a sweep's folder and closes it.
func openAndClose(dir string, r SweepRecord) error {
	folder, err := openSweep(dir, r)
	if err != nil {
		return err
	}
	return folder.Close()
}

// Two processes cannot drive one sweep. A half-written sweep file left by a
// killed process is ignored.
func TestOneSweepInAFolder(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, SweepFile+atomicfile.PartSuffix+"123"), `{"version`)
	folder, err := openSweep(dir, SweepRecord{})
	if err != nil {
		t.Fatal(err)
	}
	if err := openAndClose(dir, SweepRecord{}); runtime.GOOS == "linux" && (err == nil || !strings.Contains(err.Error(), "another process uses the sweep")) {
		t.Errorf("a second sweep in the folder: %v", err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openAndClose(dir, SweepRecord{Flags: []string{"--isl=1"}}); err != nil {
		t.Errorf("after the first: %v", err)
	}
}

func TestOpenSweep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "sweep")
	record := SweepRecord{Version: "v1", Command: []string{"moontide", "bench"}, Flags: []string{"--isl=3000", "--osl=150"}}
	for _, what := range []string{"a new folder", "the same again"} {
		if err := openAndClose(dir, record); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	// Without a started run, other flags are accepted: the original ones may have been the
	// reason that none started.
	if err := errors.Join(openAndClose(dir, SweepRecord{Flags: []string{"--url=ftp://a"}}), openAndClose(dir, record)); err != nil {
		t.Error(err)
	}
	writeFile(t, filepath.Join(dir, "concurrency-1", runfile.RunFile), "{}")
	for _, test := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--isl=3000", "--osl=151"}, "it was started with --osl=150, now it is with --osl=151"},
		{[]string{"--isl=3000"}, "it was started with --osl=150, now it is without"},
		{[]string{"--osl=150", "--seed=1", "--isl=3000"}, "it was started without, now it is with --seed=1"},
		{nil, "it was started with --isl=3000 --osl=150, now it is without"},
	} {
		err := openAndClose(dir, SweepRecord{Flags: test.flags})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %s", test.flags, err, test.want)
		}
	}
	if err := openAndClose(dir, SweepRecord{Version: "v2", Flags: record.Flags}); err != nil {
		t.Errorf("another version and command go on with it: %v", err)
	}
}

func TestOpenSweepRefuses(t *testing.T) {
	full := t.TempDir()
	writeFile(t, filepath.Join(full, "letter.txt"), "dear")
	damaged := t.TempDir()
	writeFile(t, filepath.Join(damaged, SweepFile), "{")
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	for dir, want := range map[string]string{full: "not empty, and has no sweep", damaged: "reading " + damaged, file: "not a directory"} {
		if err := openAndClose(dir, SweepRecord{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// leave creates a run's folder as a run leaves it.
func leave(t *testing.T, dir string, run runfile.Run, summary string) {
	t.Helper()
	folder, err := runfile.Create(dir, run)
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if summary != "" {
		writeFile(t, filepath.Join(dir, runfile.SummaryFile), summary)
	}
}

const invalidSummary = `{"completed": 80, "moontide": {"verdict": "INVALID"}}`

// A run is usable if it is complete and the client did not spoil it. Otherwise
// the next attempt has a new folder and salt, and the incomplete run is kept.
func TestAttempt(t *testing.T) {
	leg := Leg{Name: "concurrency-8", MaxConcurrency: 8}
	whole := runfile.Run{Ended: time.Unix(1, 0), Trace: runfile.Source{SHA256: "abc"}, Limits: runfile.Limits{MaxConcurrency: 8}}
	with := func(change func(*runfile.Run)) runfile.Run {
		run := whole
		change(&run)
		return run
	}
	tests := []struct {
		name    string
		run     runfile.Run
		summary string
		done    bool
	}{
		{"ended", whole, `{"completed": 80, "failed": 1, "moontide": {}}`, true},
		{"ended, SUSPECT", whole, `{"completed": 80, "moontide": {"verdict": "SUSPECT"}}`, true},
		{"the client spoiled it", whole, invalidSummary, false},
		{"killed", with(func(r *runfile.Run) { r.Ended = time.Time{} }), "", false},
		{"killed before its summary", whole, "", false},
		{"its end could not be written", with(func(r *runfile.Run) { r.Ended = time.Time{} }), `{"completed": 80}`, false},
		{"failed", with(func(r *runfile.Run) { r.Failure = "disk full" }), `{"completed": 3}`, false},
		{"nothing succeeded", whole, `{"completed": 0}`, false},
		{"killed, of another trace", with(func(r *runfile.Run) { r.Ended, r.Trace.SHA256 = time.Time{}, "x" }), "", false},
	}
	for _, test := range tests {
		dir := t.TempDir()
		first := attemptOf(t, leg, dir, "")
		if want := (attempt{Dir: filepath.Join(dir, "concurrency-8"), Salt: "concurrency-8/abc"}); first != want {
			t.Fatalf("of nothing: %+v", first)
		}
		leave(t, first.Dir, test.run, test.summary)
		if a, err := leg.findAttempt(dir, "", "abc", true); err != nil || a.Done != (test.done || test.summary == invalidSummary) {
			t.Errorf("%s: done %v for a search, %v", test.name, a.Done, err)
		}
		want := attempt{Dir: first.Dir, Salt: "s/concurrency-8/abc", Done: true}
		if !test.done {
			want = attempt{Dir: first.Dir + "-attempt-2", Salt: "s/concurrency-8-attempt-2/abc"}
		}
		if got := attemptOf(t, leg, dir, "s"); got != want {
			t.Errorf("%s: %+v, want %+v", test.name, got, want)
		}
		if test.done {
			continue
		}
		leave(t, want.Dir, whole, `{"completed": 80}`)
		if got := attemptOf(t, leg, dir, "s"); !got.Done || got.Dir != want.Dir {
			t.Errorf("%s, and then a whole one: %+v", test.name, got)
		}
	}
}

func attemptOf(t *testing.T, leg Leg, dir, salt string) attempt {
	t.Helper()
	a, err := leg.findAttempt(dir, salt, "abc", false)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAttemptRefusesOtherRuns(t *testing.T) {
	leg := Leg{Name: "concurrency-8", MaxConcurrency: 8}
	for name, run := range map[string]runfile.Run{
		"another trace": {Ended: time.Unix(1, 0), Trace: runfile.Source{SHA256: "other"}, Limits: runfile.Limits{MaxConcurrency: 8}},
		"another limit": {Ended: time.Unix(1, 0), Trace: runfile.Source{SHA256: "abc"}, Limits: runfile.Limits{MaxConcurrency: 9}},
	} {
		dir := t.TempDir()
		leave(t, filepath.Join(dir, leg.Name), run, `{"completed": 1}`)
		if a, err := leg.findAttempt(dir, "", "abc", false); err == nil || !strings.Contains(err.Error(), "sent other requests") {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, leg.Name, runfile.RunFile), "{")
	if _, err := leg.findAttempt(dir, "", "abc", false); err == nil || !strings.Contains(err.Error(), runfile.RunFile) {
		t.Errorf("a damaged run.json: %v", err)
	}
}
