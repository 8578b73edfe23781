package experiment

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moontide/analyze/measure"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/replay/sim/fit"
	"moontide/trace/atomicfile"
	"moontide/trace/jsonscan"
)

// SetFile is the file in a set's folder that describes all of its runs. Older versions wrote
// olderSetFile.
const (
	SetFile      = "set.json"
	olderSetFile = "sweep.json"
)

// SetRecord is the content of [SetFile].
type SetRecord struct {
	Version  string            `json:"version"`        // of the client that started the set
	Command  []string          `json:"command"`        // that started the set, secrets masked
	Settings settings.Settings `json:"settings"`       // of all runs
	Axes     []string          `json:"axes,omitempty"` // settings that differ between the runs
	Goal     *GoalRecord       `json:"goal,omitempty"`
	Ended    time.Time         `json:"ended,omitzero"` // zero: it did not end
}

// endSet records that a set has all its runs.
func endSet(dir string) error {
	var r SetRecord
	path := filepath.Join(dir, SetFile)
	if _, err := readJSON(path, &r); err != nil {
		return err
	}
	r.Ended = time.Now()
	return runfile.WriteJSON(path, r)
}

// open creates or opens the folder of the set. An existing set must have the same settings
// unless none of its runs has started, else the error is a [*settings.Error]. The folder is
// locked until it is closed.
func (s *Set) open() (io.Closer, error) {
	path := filepath.Join(s.Dir, SetFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := checkNoSet(s.Dir); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(s.Dir, 0o755); err != nil {
			return nil, fmt.Errorf("making the set's folder: %w", err)
		}
	}
	folder, err := os.Open(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the set's folder: %w", err)
	}
	if atomicfile.Lock(folder) {
		err = s.checkRecord(path)
	} else {
		err = fmt.Errorf("another process uses the set in %s", folder.Name())
	}
	if err != nil {
		folder.Close()
		return nil, err
	}
	return folder, nil
}

// record returns the content of the set's file.
func (s *Set) record() SetRecord {
	r := SetRecord{Version: s.Base.Version, Command: s.Base.Command, Settings: s.Base.Settings, Goal: s.Goal.record()}
	if len(s.Points) > 0 {
		for _, v := range s.Points[0].Values {
			r.Axes = append(r.Axes, v.Setting)
		}
	}
	return r
}

// checkRecord checks the file of a set that has begun. The settings of axes are in the
// points.
func (s *Set) checkRecord(path string) error {
	var there SetRecord
	found, err := readJSON(path, &there)
	if err != nil || !found {
		return err
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return fmt.Errorf("reading the set's folder: %w", err)
	}
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), SetFile) }) {
		return nil
	}
	now := s.record()
	load := func(r SetRecord) string {
		if r.Goal != nil {
			return "search for " + runfile.LoadName(r.Goal.Setting)
		}
		i := slices.IndexFunc(r.Axes, func(name string) bool { return slices.Contains(runfile.Loads, name) })
		if i < 0 {
			return "set"
		}
		return "set of " + runfile.LoadName(r.Axes[i])
	}
	if load(there) != load(now) {
		return wrong("%s has a %s, and this is a %s: choose another folder", s.Dir, load(there), load(now))
	}
	var others []string
	for _, d := range settings.Differences(&there.Settings, &s.Base.Settings) {
		if d.Name != "limit" && !slices.Contains(now.Axes, d.Name) && (s.Goal == nil || s.Goal.Setting != d.Name) {
			others = append(others, d.String())
		}
	}
	if others != nil {
		return wrong("%s has a set with other settings: %s; choose another folder", s.Dir, strings.Join(others, "; "))
	}
	return nil
}

// begin writes the set's file. That of a set that goes on keeps who began it.
func (s *Set) begin() error {
	path, r := filepath.Join(s.Dir, SetFile), s.record()
	var there SetRecord
	found, err := readJSON(path, &there)
	if err != nil {
		return err
	}
	if found {
		r.Version, r.Command = there.Version, there.Command
	}
	return runfile.WriteJSON(path, r) // there may be more runs to come
}

// checkNoSet returns an error if dir is not empty. It ignores half-written files of killed
// processes.
func checkNoSet(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), SetFile+atomicfile.PartSuffix) }):
		return wrong("the folder %s exists, is not empty, and has no set to resume: choose a new folder", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("making the set's folder: %w", err)
	}
	return nil
}

// attempt is a run at a point. After an incomplete or INVALID run, the next attempt has a new
// folder, and a new salt because the server may have the earlier prompts in its cache.
type attempt struct {
	dir  string
	salt string
	done bool // the run is complete
}

// attempt finds the run at a point in the set's folder, or the folder for a new one. A run
// is usable if it is complete, a request succeeded, and it is not INVALID or such runs
// count. A run of another trace is a [*settings.Error], or, in a search, no run at the point. The SHA-256 is part of the salt, so
// that sets of other shapes have other prompts.
func (s *Set) attempt(t Trial, sha256 string) (attempt, error) {
	for n := 1; ; n++ {
		name := t.Folder()
		if n > 1 {
			name = fmt.Sprintf("%s-attempt-%d", name, n)
		}
		a := attempt{dir: filepath.Join(s.Dir, name), salt: fmt.Sprintf("%s/%.12s", name, sha256)}
		if s.Base.Salt != "" {
			a.salt = s.Base.Salt + "/" + a.salt
		}
		if runfile.CheckFolder(a.dir) == nil {
			return a, nil
		}
		info, found, err := ended(a.dir)
		switch {
		case err != nil:
			return a, err
		case found.whole() && s.Goal != nil:
			if a.done = s.fits(&info, t, sha256); a.done {
				return a, nil
			}
		case found.whole() && !s.sent(&info, t, sha256):
			return a, wrong("the run in %s sent other requests, for other settings or by another version: choose a new folder for the set", a.dir)
		case found.whole() && !found.invalid():
			a.done = true
			return a, nil
		}
	}
}

// fits reports whether a run of an earlier search, perhaps in another range, is one at a
// point: it has enough requests, of the same trace or description, and the same engines.
func (s *Set) fits(info *runfile.Run, t Trial, sha256 string) bool {
	ignored := []string{"seed", "salt", "exclude-first", "exclude-last"}
	if !s.recorded() && s.Base.Pacing.Limit == 0 && info.Rows >= t.requests {
		ignored = append(ignored, "limit")
		if info.Rows > t.requests { // the same description draws more
			more := t
			more.requests = info.Rows
			cfg, err := s.config(more, "", "")
			if err != nil {
				return false
			}
			reqs, _, err := cfg.draw()
			if err != nil {
				return false
			}
			if sha256, err = digestRows(reqs); err != nil {
				return false
			}
		}
	}
	cfg, err := s.config(t, "", "")
	if err != nil || info.Trace.DigestRows == 0 && info.Trace.SHA256 != sha256 || !s.sameEngines(info) {
		return false
	}
	return !slices.ContainsFunc(settings.Differences(&info.Settings, &cfg.Settings), func(d settings.Difference) bool {
		return !slices.Contains(ignored, d.Name)
	})
}

// sameEngines reports whether a run had the engine file of the set.
func (s *Set) sameEngines(info *runfile.Run) bool {
	if s.Base.EngineFile == "" {
		return true
	}
	file, err := fit.ReadFile(s.Base.EngineFile)
	return err == nil && file.SHA256 == info.Target.Engines.File.SHA256
}

// sent reports whether a run sent the requests of a point.
func (s *Set) sent(info *runfile.Run, t Trial, sha256 string) bool {
	cfg, err := s.config(t, "", "")
	if err != nil || info.Settings.MaxConcurrency != cfg.MaxConcurrency || !s.sameEngines(info) {
		return false
	}
	if url := info.Point.Get("url"); url != "" && url != t.Point.Masked().Get("url") {
		return false
	}
	limit := info.Settings.Pacing.Limit
	if info.Trace.DigestRows > 0 { // the rest of a large file was not read
		return limit == t.requests
	}
	whole := limit == 0 && (t.requests == 0 || info.Rows <= t.requests)
	return info.Trace.SHA256 == sha256 && (whole || limit == t.requests)
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
	text, err := runfile.Read(filepath.Join(dir, runfile.RunFile))
	if errors.Is(err, fs.ErrNotExist) {
		return info, found, nil
	}
	if err == nil {
		info, err = runfile.Unmarshal(text)
	}
	if err != nil {
		return info, found, fmt.Errorf("reading %s: %w", filepath.Join(dir, runfile.RunFile), err)
	}
	if info.Finished() {
		_, err = readJSON(filepath.Join(dir, runfile.SummaryFile), &found)
	}
	return info, found, err
}

// readJSON reads a JSON file and reports whether it exists.
func readJSON(path string, into any) (there bool, err error) {
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

// IsSet reports whether dir is the folder of a set.
func IsSet(dir string) bool {
	for _, name := range []string{SetFile, olderSetFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// SetFolder is what the folder of a set has.
type SetFolder struct {
	SetRecord
	// Runs are the complete runs, sorted by shape, level and start, or with a goal by their
	// start. Of several attempts at a run it is the last that is not INVALID, or the last.
	Runs []SetRun
	// Unended are the folders of runs without a complete attempt, and that of the set if it
	// did not end.
	Unended []string
}

// SetRun is a run in the folder of a set.
type SetRun struct {
	Point
	Dir            string
	whole, invalid bool
	started        time.Time
}

// OpenSet reads the folder of a set.
func OpenSet(dir string) (set SetFolder, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return set, fmt.Errorf("reading the set's folder: %w", err)
	}
	var begun []SetRun
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, has, err := ended(path)
		if err != nil {
			return set, err
		}
		run := SetRun{info.Point, path, has.whole(), has.invalid(), info.Started}
		if len(run.Values) == 0 {
			continue
		}
		if !run.whole {
			begun = append(begun, run)
			continue
		}
		i := slices.IndexFunc(set.Runs, func(o SetRun) bool { return o.Same(run.Point) })
		switch {
		case i < 0:
			set.Runs = append(set.Runs, run)
		case set.Runs[i].invalid == run.invalid && run.started.After(set.Runs[i].started) || set.Runs[i].invalid && !run.invalid:
			set.Runs[i] = run
		}
	}
	if len(set.Runs) == 0 {
		return set, fmt.Errorf("%s is the folder of a set without a complete run", dir)
	}
	if set.SetRecord, err = readSet(dir); err != nil {
		return set, err
	}
	level := func(p Point) float64 {
		_, level := p.Load()
		return level
	}
	slices.SortStableFunc(set.Runs, func(a, b SetRun) int {
		if set.Goal != nil {
			return a.started.Compare(b.started)
		}
		return cmp.Or(compareShapes(a.Point, b.Point), cmp.Compare(level(a.Point), level(b.Point)), a.started.Compare(b.started))
	})
	for _, b := range begun {
		if !slices.ContainsFunc(set.Runs, func(r SetRun) bool { return r.Same(b.Point) }) {
			set.Unended = append(set.Unended, b.Dir)
		}
	}
	if set.Ended.IsZero() {
		set.Unended = append(set.Unended, dir)
	}
	return set, nil
}

// Measure measures the runs of the set.
func (s *SetFolder) Measure(cfg MeasureConfig) (trials []Trial, err error) {
	for _, run := range s.Runs {
		t := Trial{Point: run.Point, Reused: true}
		if t.Result, err = Measure(cfg, run.Dir); err != nil {
			return nil, err
		}
		t.Metrics.Detail = nil
		trials = append(trials, t)
	}
	return trials, nil
}

// readSet reads the file of a set.
func readSet(dir string) (r SetRecord, err error) {
	found, err := readJSON(filepath.Join(dir, SetFile), &r)
	if !found && err == nil {
		_, err = readJSON(filepath.Join(dir, olderSetFile), &r)
	}
	return r, err
}

// compareShapes compares prompt lengths, then output lengths, as numbers if they are.
func compareShapes(a, b Point) int {
	number := func(text string) (n int) {
		fmt.Sscan(text, &n)
		return n
	}
	return cmp.Or(cmp.Compare(number(a.Get("isl")), number(b.Get("isl"))), cmp.Compare(number(a.Get("osl")), number(b.Get("osl"))))
}
