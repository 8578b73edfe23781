package experiment

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"moontide/analyze/measure"
	"moontide/replay/runfile"
	"moontide/trace/atomicfile"
	"moontide/trace/jsonscan"
)

// SweepFile is the file in a sweep's folder that describes all of its runs.
const SweepFile = "sweep.json"

// SweepRecord is the content of [SweepFile].
type SweepRecord struct {
	Version string   `json:"version"` // of the client that started the sweep
	Command []string `json:"command"` // that started the sweep, secrets masked
	// Flags are the flags that affect a run except its level, secrets masked.
	Flags []string  `json:"flags"`
	Ended time.Time `json:"ended,omitzero"` // zero: it did not end
}

// endSweep records that a sweep has all its runs.
func endSweep(dir string) error {
	var r SweepRecord
	path := filepath.Join(dir, SweepFile)
	if _, err := read(path, &r); err != nil {
		return err
	}
	r.Ended = time.Now()
	return runfile.WriteJSON(path, r)
}

// openSweep creates or opens the folder of a sweep. An existing sweep must have
// the same flags unless none of its runs has started, else the error is a [*ConfigError].
// The folder is locked until it is closed.
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
	if atomicfile.Lock(folder) {
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

// begin writes the sweep's file or checks an existing one.
func (r SweepRecord) begin(path string) error {
	var there SweepRecord
	found, err := read(path, &there)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	had, has := without(there.Flags, r.Flags), without(r.Flags, there.Flags)
	entries, err := os.ReadDir(dir)
	switch {
	case found && len(had)+len(has) == 0:
		there.Ended = time.Time{} // there may be more runs to come
		return runfile.WriteJSON(path, there)
	case err != nil:
		return fmt.Errorf("reading the sweep's folder: %w", err)
	case found && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), SweepFile) }):
		return wrong("", "%s has a sweep with other flags: it was started %s, now it is %s; choose another folder", dir, with(had), with(has))
	}
	return runfile.WriteJSON(path, r)
}

// checkNoSweep returns an error if dir is not empty. It ignores half-written sweep files
// of killed processes.
func checkNoSweep(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), SweepFile+atomicfile.PartSuffix) }):
		return wrong("", "sweep folder %s exists, is not empty, and has no sweep to resume: choose a new folder", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("making the sweep's folder: %w", err)
	}
	return nil
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

// attempt is a run of a leg. After an incomplete or INVALID run, the next attempt has a
// new folder, and a new salt because the server may have the earlier prompts in its cache.
type attempt struct {
	Dir  string
	Salt string
	Done bool // the run is complete
}

// findAttempt finds the run of a leg in a sweep's folder, or the folder for a new one. A
// run is usable if it is complete, a request succeeded, and it is not INVALID or such runs
// count. A run of a trace with another SHA-256 is a [*ConfigError]. The SHA-256 is part of
// the salt, so that sweeps of other shapes have other prompts.
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
			return a, wrong("", "the run in %s sent other requests, for other settings or by another version: choose a new folder for the sweep", a.Dir)
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

// summary is the part of summary.json that decides whether a run is usable.
type summary struct {
	Completed int `json:"completed"`
	Own       struct {
		Verdict string `json:"verdict"`
	} `json:"moontide"`
}

func (s summary) whole() bool   { return s.Completed > 0 }
func (s summary) invalid() bool { return s.Own.Verdict == measure.Invalid.String() }

// ended reads run.json and, of a complete run, summary.json. A killed process may leave a
// folder without them.
func ended(dir string) (info runfile.Run, found summary, err error) {
	there, err := read(filepath.Join(dir, runfile.RunFile), &info)
	if !there || !info.Finished() {
		return info, summary{}, err
	}
	_, err = read(filepath.Join(dir, runfile.SummaryFile), &found)
	return info, found, err
}

// read reads a JSON file and reports whether it exists.
func read(path string, into any) (there bool, err error) {
	text, err := runfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		if err = json.Unmarshal(text, into); err == nil {
			return true, nil
		}
		err = jsonscan.Fault(err)
	}
	return false, fmt.Errorf("reading %s: %w", path, err)
}

// IsSweep reports whether dir is the folder of a sweep.
func IsSweep(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, SweepFile))
	return err == nil
}

// MeasureSweep measures the complete runs of a sweep, sorted by shape, level and start. Of
// several attempts at a run it takes the last that is not INVALID, or the last. unended are
// the folders of those without a complete attempt, and dir if the sweep did not end.
func MeasureSweep(cfg MeasureConfig, dir string) (results []LegResult, unended []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the sweep's folder: %w", err)
	}
	type found struct {
		LegResult
		invalid bool
		started int64
	}
	var all, begun []found
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, has, err := ended(path)
		if err != nil {
			return nil, nil, err
		}
		if info.Leg == (runfile.Leg{}) {
			continue
		}
		leg, err := legOf(info.Leg)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", filepath.Join(path, runfile.RunFile), err)
		}
		leg.Name = e.Name()
		f := found{LegResult{Leg: leg, Result: &Result{Dir: path}, Found: true}, has.invalid(), info.Started.UnixNano()}
		if !has.whole() {
			begun = append(begun, f)
			continue
		}
		i := slices.IndexFunc(all, func(o found) bool { return o.same(leg) })
		switch {
		case i < 0:
			all = append(all, f)
		case all[i].invalid == f.invalid && f.started > all[i].started || all[i].invalid && !f.invalid:
			all[i] = f
		}
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("%s is the folder of a sweep without a complete run", dir)
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.Shape.ISL, b.Shape.ISL), cmp.Compare(a.Shape.OSL, b.Shape.OSL), cmp.Compare(a.Level, b.Level), cmp.Compare(a.started, b.started))
	})
	for _, b := range begun {
		if !slices.ContainsFunc(all, func(f found) bool { return f.same(b.Leg) }) {
			unended = append(unended, b.Dir)
		}
	}
	for _, f := range all {
		if f.Result, err = Measure(cfg, f.Dir); err != nil {
			return nil, nil, err
		}
		f.Metrics.Detail = nil
		results = append(results, f.LegResult)
	}
	var sweep SweepRecord
	if _, err := read(filepath.Join(dir, SweepFile), &sweep); err != nil {
		return nil, nil, err
	}
	if sweep.Ended.IsZero() {
		unended = append(unended, dir)
	}
	return results, unended, nil
}

// legOf returns a leg from run.json, without its name.
func legOf(r runfile.Leg) (l Leg, err error) {
	l = Leg{Target: Target{Label: r.Deployment}, Axis: Axis(r.Axis), Repeat: r.Repeat}
	if !slices.Contains([]Axis{Concurrency, Rate, Speedup}, l.Axis) {
		return l, fmt.Errorf("unknown axis %q of a sweep", r.Axis)
	}
	if l.Level, err = strconv.ParseFloat(r.Level, 64); err != nil || math.IsNaN(l.Level) {
		return l, fmt.Errorf("%q is not a level of a sweep", r.Level)
	}
	if r.Shape != "" {
		shapes, err := ParseShapes(r.Shape)
		if err != nil {
			return l, err
		}
		l.Shape = shapes[0]
	}
	return l, nil
}

// same reports whether two legs are attempts at one run.
func (l Leg) same(o Leg) bool {
	return l.Target.Label == o.Target.Label && l.Shape == o.Shape && l.Axis == o.Axis && l.Level == o.Level && l.Repeat == o.Repeat
}
