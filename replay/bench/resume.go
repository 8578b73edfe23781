package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"moontide/replay"
)

// SweepFile is the file in a sweep's folder that says what all of its runs have
// in common.
const SweepFile = "sweep.json"

// SweepRecord is sweep.json.
type SweepRecord struct {
	Version string   `json:"version"` // of the client that began the sweep
	Command []string `json:"command"` // that began it, secrets masked
	// Flags are all that shape a run but its level, secrets masked.
	Flags []string `json:"flags"`
}

// OpenSweep makes dir the folder of a sweep, or goes on with the one that is
// there, which must have the same flags unless none of its runs began.
func OpenSweep(dir string, r SweepRecord) error {
	path := filepath.Join(dir, SweepFile)
	var there SweepRecord
	switch found, err := read(path, &there); {
	case err != nil:
		return err
	case !found:
		if err := replay.CheckFolder(dir); err != nil {
			return fmt.Errorf("%w, and holds no sweep to go on with", err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making the sweep's folder: %w", err)
		}
		return replay.WriteJSON(path, r)
	}
	had, has := without(there.Flags, r.Flags), without(r.Flags, there.Flags)
	if len(had)+len(has) == 0 {
		return nil
	}
	entries, err := os.ReadDir(dir)
	switch {
	case err != nil:
		return fmt.Errorf("reading the sweep's folder: %w", err)
	case len(entries) == 1: // its own file: what was wrong with the flags can be mended
		return replay.WriteJSON(path, r)
	}
	return fmt.Errorf("%s holds a sweep of another kind: it was begun %s, and now it is %s; want another folder", dir, with(had), with(has))
}

// without are the flags that others are not.
func without(flags, others []string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return slices.Contains(others, f) })
}

func with(flags []string) string {
	if len(flags) == 0 {
		return "without"
	}
	return "with " + strings.Join(flags, " ")
}

// Attempt is a run of a leg. A run that was cut short stays where it is, and
// the next attempt gets a folder and a salt of its own: the server's cache may
// still know the prompts of the one before.
type Attempt struct {
	Dir  string
	Salt string
	Done bool // the run is there, from beginning to end
}

// Attempt finds the run of a leg in a sweep's folder, or where it goes. A run
// counts if it came to its end and a request succeeded. It must be of the same
// trace, by its SHA-256. That is a part of the salt, so that sweeps of other
// shapes do not find each other's prompts in the server's cache.
func (l Leg) Attempt(dir, salt, sha256 string) (Attempt, error) {
	for n := 1; ; n++ {
		name := l.Name
		if n > 1 {
			name = fmt.Sprintf("%s-attempt-%d", l.Name, n)
		}
		a := Attempt{Dir: filepath.Join(dir, name), Salt: fmt.Sprintf("%s/%.12s", name, sha256)}
		if salt != "" {
			a.Salt = salt + "/" + a.Salt
		}
		if replay.CheckFolder(a.Dir) == nil {
			return a, nil
		}
		run, ended, err := ended(a.Dir)
		switch {
		case err != nil:
			return a, err
		case ended && run.Trace.SHA256 != sha256, ended && run.Limits.MaxConcurrency != l.MaxConcurrency:
			return a, fmt.Errorf("the run in %s was of other requests: want another folder for the sweep", a.Dir)
		case ended:
			a.Done = true
			return a, nil
		}
	}
}

// ended reads what is in a run's folder, and whether it is a whole run. A
// folder that lacks a file was left behind by a kill.
func ended(dir string) (run replay.Run, whole bool, err error) {
	var summary struct {
		Completed int `json:"completed"`
	}
	there, err := read(filepath.Join(dir, replay.RunFile), &run)
	if !there {
		return run, false, err
	}
	there, err = read(filepath.Join(dir, replay.SummaryFile), &summary)
	return run, there && run.Finished() && summary.Completed > 0, err
}

// read reads a file of JSON, if it is there.
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
