package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"moontide/analyze/run"
	"moontide/replay/runfile"
	"moontide/trace/atomicfile"
)

// SweepFile is the file in a sweep's folder that describes all of its runs.
const SweepFile = "sweep.json"

// SweepRecord is the content of [SweepFile].
type SweepRecord struct {
	Version string   `json:"version"` // of the client that started the sweep
	Command []string `json:"command"` // that started the sweep, secrets masked
	// Flags holds all flags that affect a run except its level, secrets masked.
	Flags []string `json:"flags"`
}

// openSweep creates or opens the folder of a sweep. An existing sweep must have
// the same flags unless none of its runs has started. The folder is locked
// until it is closed.
func openSweep(dir string, r SweepRecord) (io.Closer, error) {
	path := filepath.Join(dir, SweepFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := checkNoSweep(dir); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("making the sweep's folder: %w", err)
		}
	}
	folder, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the sweep's folder: %w", err)
	}
	if runfile.Lock(folder) {
		err = r.begin(path)
	} else {
		err = fmt.Errorf("another process uses the sweep in %s", folder.Name())
	}
	if err != nil {
		folder.Close()
		return nil, err
	}
	return folder, nil
}

// begin writes the sweep's file, or checks an existing one.
func (r SweepRecord) begin(path string) error {
	var there SweepRecord
	found, err := read(path, &there)
	switch {
	case err != nil:
		return err
	case found:
		return r.follows(there, path)
	}
	return runfile.WriteJSON(path, r)
}

// checkNoSweep returns an error if dir is unsuitable for a new sweep. A
// half-written sweep file left by a killed process is ignored.
func checkNoSweep(dir string) error {
	entries, _ := os.ReadDir(dir)
	if len(entries) > 0 && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), SweepFile+atomicfile.PartSuffix) }) {
		return nil
	}
	switch err := runfile.CheckFolder(dir); {
	case err != nil && len(entries) > 0:
		return fmt.Errorf("sweep folder %s exists, is not empty, and has no sweep to resume: choose a new folder", dir)
	case err != nil:
		return err
	}
	return nil
}

// follows returns an error if a sweep cannot resume an existing one.
func (r SweepRecord) follows(there SweepRecord, path string) error {
	dir := filepath.Dir(path)
	had, has := without(there.Flags, r.Flags), without(r.Flags, there.Flags)
	if len(had)+len(has) == 0 {
		return nil
	}
	entries, err := os.ReadDir(dir)
	switch {
	case err != nil:
		return fmt.Errorf("reading the sweep's folder: %w", err)
	case !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), SweepFile) }):
		// No run has started, so the flags may change.
		return runfile.WriteJSON(path, r)
	}
	return fmt.Errorf("%s has a sweep with other flags: it was started %s, now it is %s; choose another folder", dir, with(had), with(has))
}

// without returns the flags that are not in others.
func without(flags, others []string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return slices.Contains(others, f) })
}

func with(flags []string) string {
	if len(flags) == 0 {
		return "without"
	}
	return "with " + strings.Join(flags, " ")
}

// attempt is a run of a leg. An incomplete or INVALID run is kept, and the next
// attempt gets a new folder and salt, because the server may still have the
// earlier prompts in its cache.
type attempt struct {
	Dir  string
	Salt string
	Done bool // the run is complete
}

// ErrOtherRun reports a folder with a run that is not the one to execute.
var ErrOtherRun = errors.New("sent other requests, for other settings or by another version: choose a new folder for the sweep")

// findAttempt finds the run of a leg in a sweep's folder, or the folder for a
// new one. A run is usable if it is complete, at least one request succeeded
// and the verdict is not INVALID, unless such runs count. Its trace must have the given
// SHA-256, which is part of the salt so that sweeps of other shapes have other prompts.
func (l Leg) findAttempt(dir, salt, sha256 string, invalidCounts bool) (attempt, error) {
	for n := 1; ; n++ {
		name := l.Name
		if n > 1 {
			name = fmt.Sprintf("%s-attempt-%d", l.Name, n)
		}
		a := attempt{Dir: filepath.Join(dir, name), Salt: fmt.Sprintf("%s/%.12s", name, sha256)}
		if salt != "" {
			a.Salt = salt + "/" + a.Salt
		}
		if runfile.CheckFolder(a.Dir) == nil {
			return a, nil
		}
		info, found, err := ended(a.Dir)
		switch {
		case err != nil:
			return a, err
		case found.whole() && !l.sent(&info, sha256):
			return a, fmt.Errorf("the run in %s %w", a.Dir, ErrOtherRun)
		case found.whole() && (invalidCounts || !found.invalid()):
			a.Done = true
			return a, nil
		}
	}
}

// sent reports whether a run sent the requests of the leg.
func (l Leg) sent(info *runfile.Run, sha256 string) bool {
	if info.Limits.MaxConcurrency != l.MaxConcurrency {
		return false
	}
	if info.Trace.DigestRows > 0 { // the rest of a large file was not read
		return info.Trace.Limit == l.Prompts
	}
	whole := info.Trace.Limit == 0 && (l.Prompts == 0 || info.Rows <= l.Prompts)
	return info.Trace.SHA256 == sha256 && (whole || info.Trace.Limit == l.Prompts)
}

// summary is the part of a run's summary.json that decides whether it is
// usable.
type summary struct {
	Completed int `json:"completed"`
	Own       struct {
		Verdict string `json:"verdict"`
	} `json:"moontide"`
}

func (s summary) whole() bool   { return s.Completed > 0 }
func (s summary) invalid() bool { return s.Own.Verdict == run.Invalid.String() }

// ended reads the files of a run's folder; the summary is empty unless the run
// is complete. A killed process may leave a folder with files missing.
func ended(dir string) (info runfile.Run, found summary, err error) {
	there, err := read(filepath.Join(dir, runfile.RunFile), &info)
	if parts, noParts := runfile.ReadParts(dir); noParts == nil && !parts.Ended.IsZero() {
		recording, err := OpenRecording(dir)
		if err != nil {
			return info, summary{}, err
		}
		info, there = recording.Run, true
		recording.Close()
	}
	if !there || !info.Finished() {
		return info, summary{}, err
	}
	_, err = read(filepath.Join(dir, runfile.SummaryFile), &found)
	return info, found, err
}

// read reads a JSON file and reports whether it exists.
func read(path string, into any) (there bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", path, err)
	}
	return true, nil
}
