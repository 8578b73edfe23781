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
	"moontide/replay/settings"
	"moontide/trace/atomicfile"
)

// setIn returns a set with some settings.
func setIn(t *testing.T, dir string, texts ...string) *Set {
	t.Helper()
	s := &Set{Dir: dir}
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		if err := s.Base.Set(name, value, ""); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// openAndClose opens a set's folder and closes it.
func openAndClose(s *Set) error {
	folder, err := s.open()
	if err != nil {
		return err
	}
	return errors.Join(s.begin(), folder.Close())
}

// Two processes cannot drive one set. A half-written file left by a killed process is ignored.
func TestOneSetInAFolder(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, SetFile+atomicfile.PartSuffix+"123"), `{"version`)
	folder, err := setIn(t, dir).open()
	if err != nil {
		t.Fatal(err)
	}
	if err := openAndClose(setIn(t, dir)); runtime.GOOS == "linux" && (err == nil || !strings.Contains(err.Error(), "another process uses the set")) {
		t.Errorf("a second set in the folder: %v", err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openAndClose(setIn(t, dir, "isl=1")); err != nil {
		t.Errorf("after the first: %v", err)
	}
}

func TestOpenSet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "set")
	first := []string{"isl=3000", "osl=150"}
	for _, what := range []string{"a new folder", "the same again"} {
		s := setIn(t, dir, first...)
		s.Base.Version, s.Base.Command = "v1", []string{"moontide", "bench"}
		if err := openAndClose(s); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	// Without a started run, other settings are accepted: the original ones may have been the
	// reason that none started.
	if err := errors.Join(openAndClose(setIn(t, dir, "url=ftp://a")), openAndClose(setIn(t, dir, first...))); err != nil {
		t.Error(err)
	}
	writeFile(t, filepath.Join(dir, "concurrency-1", runfile.RunFile), "{}")
	for want, texts := range map[string][]string{
		"osl was 150, is 151":                               {"isl=3000", "osl=151"},
		"osl was 150, is not set":                           {"isl=3000"},
		"seed was not set, is 1":                            {"osl=150", "seed=1", "isl=3000"},
		"isl was 3000, is not set; osl was 150, is not set": nil,
	} {
		var wrong *settings.Error
		if err := openAndClose(setIn(t, dir, texts...)); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want+"; choose") {
			t.Errorf("%v: %v, want %s", texts, err, want)
		}
	}
	again := setIn(t, dir, append(first, "limit=3", "out=elsewhere", "force=true")...)
	if again.Base.Version = "v2"; openAndClose(again) != nil {
		t.Error("another version, command, output and length do not go on with it")
	}
	axis := setIn(t, dir, "isl=1", "osl=150")
	if axis.Points = Combine(nil, Axis{Setting: "isl", Values: []string{"1"}}); openAndClose(axis) != nil {
		t.Error("other values of an axis do not go on with it")
	}
}

func TestOpenSetRefuses(t *testing.T) {
	full := t.TempDir()
	writeFile(t, filepath.Join(full, "letter.txt"), "dear")
	damaged := t.TempDir()
	writeFile(t, filepath.Join(damaged, SetFile), "{")
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	for dir, want := range map[string]string{full: "not empty, and has no set", damaged: "reading " + damaged, file: "not a directory"} {
		if err := openAndClose(setIn(t, dir)); err == nil || !strings.Contains(err.Error(), want) {
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
	trial := Trial{Point: Combine(nil, Axis{Setting: "max-concurrency", Values: []string{"8"}})[0]}
	whole := runfile.Run{Settings: settings.Settings{MaxConcurrency: 8, Closed: true}, Outcome: runfile.Outcome{Ended: time.Unix(1, 0), Trace: runfile.Source{SHA256: "abc"}}}
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
		first := attemptOf(t, setIn(t, dir), trial)
		if want := (attempt{dir: filepath.Join(dir, "concurrency-8"), salt: "concurrency-8/abc"}); first != want {
			t.Fatalf("of nothing: %+v", first)
		}
		leave(t, first.dir, test.run, test.summary)
		search := setIn(t, dir)
		search.Goal = &Goal{}
		if a := attemptOf(t, search, trial); a.done != (test.done || test.summary == invalidSummary) {
			t.Errorf("%s: done %v for a search", test.name, a.done)
		}
		want := attempt{dir: first.dir, salt: "s/concurrency-8/abc", done: true}
		if !test.done {
			want = attempt{dir: first.dir + "-attempt-2", salt: "s/concurrency-8-attempt-2/abc"}
		}
		if got := attemptOf(t, setIn(t, dir, "salt=s"), trial); got != want {
			t.Errorf("%s: %+v, want %+v", test.name, got, want)
		}
		if test.done {
			continue
		}
		leave(t, want.dir, whole, `{"completed": 80}`)
		if got := attemptOf(t, setIn(t, dir, "salt=s"), trial); !got.done || got.dir != want.dir {
			t.Errorf("%s, and then a whole one: %+v", test.name, got)
		}
	}
}

func attemptOf(t *testing.T, s *Set, trial Trial) attempt {
	t.Helper()
	a, err := s.attempt(trial, "abc")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAttemptRefusesOtherRuns(t *testing.T) {
	trial := Trial{Point: Combine(nil, Axis{Setting: "max-concurrency", Values: []string{"8"}})[0]}
	for name, run := range map[string]runfile.Run{
		"another trace": {Settings: settings.Settings{MaxConcurrency: 8, Closed: true}, Outcome: runfile.Outcome{Ended: time.Unix(1, 0), Trace: runfile.Source{SHA256: "other"}}},
		"another limit": {Settings: settings.Settings{MaxConcurrency: 9}, Outcome: runfile.Outcome{Ended: time.Unix(1, 0), Trace: runfile.Source{SHA256: "abc"}}},
	} {
		dir := t.TempDir()
		leave(t, filepath.Join(dir, trial.Folder()), run, `{"completed": 1}`)
		if a, err := setIn(t, dir).attempt(trial, "abc"); err == nil || !strings.Contains(err.Error(), "sent other requests") {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, trial.Folder(), runfile.RunFile), "{")
	if _, err := setIn(t, dir).attempt(trial, "abc"); err == nil || !strings.Contains(err.Error(), runfile.RunFile) {
		t.Errorf("a damaged run.json: %v", err)
	}
}
