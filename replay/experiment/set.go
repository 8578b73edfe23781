package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"moontide/analyze/measure"
	"moontide/analyze/slo"
	"moontide/replay/listen"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/trace"
	"moontide/trace/atomicfile"
	"moontide/trace/format"
)

// Point is the place of a run in a set.
type Point = runfile.Point

// Axis is a setting that differs between the runs of a set.
type Axis struct {
	Setting string
	Values  []string
	Labels  []string // of the values, in names of folders and reports; nil has none
}

// Combine returns the points of all combinations of axes, the last one varying fastest, from
// each of some points; nil is one without values.
func Combine(points []Point, axes ...Axis) []Point {
	if points == nil {
		points = []Point{{}}
	}
	for _, axis := range axes {
		var longer []Point
		for _, p := range points {
			for i, text := range axis.Values {
				v := runfile.Value{Setting: axis.Setting, Text: text}
				if axis.Labels != nil {
					v.Label = axis.Labels[i]
				}
				longer = append(longer, p.With(v))
			}
		}
		points = longer
	}
	return points
}

// Set is runs that differ in named settings.
type Set struct {
	// Base configures every run; a point sets its values over it. The set derives the
	// folder, the salt, the number of requests (unless it is set) and, at a concurrency,
	// the closed loop.
	Base   Config
	Points []Point // the runs, in order; with a Goal, each is the start of a search
	Repeat int     // runs of each point; 0 is 1
	Goal   *Goal
	// Dir is the folder of the set, with a folder for each run. Sets with the same folder
	// and base continue each other.
	Dir string
	// Draw returns the requests of a run of a description; nil draws them by the settings.
	Draw func(Point) trace.Requests
	// Save writes the reports of a run to its folder: at least summary.json, which marks
	// the run as done for a resumed set. nil writes only that file.
	Save func(*Result) error
	Each func(Trial) // if not nil, is called with each measured run, even if it failed

	RepeatInvalid bool // repeats an INVALID run once, at once
}

// Trial is a measured run of a set.
type Trial struct {
	Point
	*Result
	Reused     bool            // the run existed already
	Judgements []slo.Judgement // of the objectives of a goal
	// Growth is the growth of the queue in requests per second. With a growing queue, every
	// objective of latency fails in the end.
	Growth float64

	draw       uint32 // changes the seed of arrivals and texts
	requests   int    // 0 is all of a trace
	unmeasured int    // requests at the end, and warmupRounds times as many at the start
}

// Invalid reports whether the verdict of the run is INVALID.
func (t *Trial) Invalid() bool { return t.Metrics.Verdict.Level == measure.Invalid }

// Met reports whether the run met the objectives, its queue did not grow, and it is not
// INVALID.
func (t *Trial) Met() bool {
	return !t.Invalid() && t.Growth == 0 && len(slo.Failed(t.Judgements)) == 0
}

// Level returns the level of the trial's load.
func (t *Trial) Level() float64 {
	_, level := t.Load()
	return level
}

const (
	// perSlot is the number of requests per request in flight. The server is not fully
	// loaded during the first and the last of them.
	perSlot = 10
	// rateSeconds is how long requests arrive at a rate.
	rateSeconds = 60
	minRequests = 10 // enough for a median
)

// Run executes the runs that are not in the folder yet, and measures all of them. It stops
// at the first failure and returns the runs before it, or nil if none was started. A
// [*settings.Error] reports settings that contradict each other.
func (s *Set) Run(ctx context.Context) (trials []Trial, err error) {
	if s.Goal != nil {
		return s.search(ctx)
	}
	var planned []Trial
	folders := map[string]Point{}
	for _, p := range s.Points {
		if other, taken := folders[p.Folder()]; taken {
			return nil, wrong("%v and %v would have the same folder: give one of them", other, p)
		}
		folders[p.Folder()] = p
		for n := range max(s.Repeat, 1) {
			if p.Repeat = 0; s.Repeat > 1 {
				p.Repeat = n + 1
			}
			t, err := s.plan(p)
			if err != nil {
				return nil, err
			}
			planned = append(planned, t)
		}
	}
	for _, t := range planned {
		if err := s.check(t); err != nil {
			return nil, err
		}
	}
	if err := s.probe(ctx); err != nil {
		return nil, err
	}
	return s.each(ctx, planned, func(done []Trial) (Trial, bool, error) {
		if len(done) == len(planned) {
			return Trial{}, false, nil
		}
		return planned[len(done)], true, nil
	})
}

// probe probes each of several URLs before the first run.
func (s *Set) probe(ctx context.Context) error {
	var probed []string
	for _, p := range s.Points {
		url := p.Get("url")
		if s.Base.Virtual || url == "" || slices.Contains(probed, url) {
			continue
		}
		probed = append(probed, url)
		cfg := s.Base.Client
		cfg.URLs = []string{url}
		client, err := openai.New(cfg)
		if err != nil {
			return wrong("%v", err)
		}
		_, err = awaitReady(ctx, s.Base.Observer, s.Base.WaitReady, client.Probe)
		client.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", p.Label(), err)
		}
	}
	return nil
}

// plan returns the run at a point: with all requests of a trace, ten requests per request in
// flight, or those of one minute at its rate, and at least ten.
func (s *Set) plan(p Point) (Trial, error) {
	t := Trial{Point: p, requests: s.Base.Pacing.Limit}
	load, level := p.Load()
	if n, err := strconv.Atoi(p.Get("limit")); err == nil {
		t.requests = n
	}
	if t.requests > 0 || s.recorded() {
		return t, nil
	}
	if math.IsInf(level, 1) {
		return t, wrong("{limit} is needed with an infinite {%s}", load)
	}
	each := rateSeconds
	switch {
	case s.closes(load):
		each = perSlot
	case closes(load):
		level = cmp.Or(s.Base.Pacing.Rate.Value, s.Base.Pacing.SessionRate.Value)
	}
	t.requests = max(minRequests, int(math.Ceil(level*float64(each))))
	return t, nil
}

// recorded reports whether the requests are those of a trace.
func (s *Set) recorded() bool { return s.Base.Trace.Path != "" || s.Base.Requests != nil }

// closes reports whether a load is that of a closed loop.
func closes(load string) bool { return load == "max-concurrency" || load == "max-sessions" }

// closes reports whether the runs are closed loops: their load is a concurrency, and no rate
// is set.
func (s *Set) closes(load string) bool {
	return closes(load) && !s.Base.IsSet("rate", "session-rate", "speedup")
}

// config returns the configuration of a run.
func (s *Set) config(t Trial, dir, salt string) (Config, error) {
	cfg := s.Base
	for _, v := range t.Values {
		if err := cfg.Settings.Replace(v.Setting, v.Text, "set"); err != nil {
			return cfg, wrong("{%s} %v", v.Setting, err)
		}
	}
	if s.Draw != nil {
		cfg.Requests = s.Draw(t.Point)
	}
	load, _ := t.Load()
	cfg.Closed = cfg.Closed || s.closes(load)
	cfg.Pacing.Limit = t.requests
	if n := t.unmeasured; n > 0 {
		cfg.Window = settings.Window{WarmupRequests: warmupRounds * n, CooldownRequests: n}
	}
	cfg.Seed += uint64(t.draw)
	cfg.Output.Dir, cfg.point = dir, t.Point
	if !cfg.Virtual { // else nothing is sent
		cfg.Salt = salt
	}
	if s.Draw != nil {
		cfg.Copy = t.Folder()
	}
	return cfg, nil
}

// At returns the configuration of the run at a point.
func (s *Set) At(p Point) (Config, error) {
	t, err := s.plan(p)
	if err != nil {
		return Config{}, err
	}
	return s.config(t, "", "")
}

// budget says how many runs the set has, and how long requests arrive in them, if known.
func (s *Set) budget() string {
	runs, most := len(s.Points)*max(s.Repeat, 1), ""
	if s.Goal != nil {
		runs, most = len(s.Points)*cmp.Or(s.Goal.MaxRuns, mostRuns), "at most "
	}
	if runs <= 1 {
		return ""
	}
	text := fmt.Sprintf("%s%d runs", most, runs)
	if seconds := s.seconds(); seconds > 0 && !s.Base.Virtual {
		text += fmt.Sprintf(", about %v of arrivals", time.Duration(seconds*float64(time.Second)).Round(time.Second))
	}
	return text + fmt.Sprintf("; stop any time, the same command continues in %s", s.Dir)
}

// seconds returns how long requests arrive in all runs of known rates.
func (s *Set) seconds() (sum float64) {
	if s.Goal != nil || s.recorded() {
		return 0
	}
	for _, p := range s.Points {
		t, err := s.plan(p)
		if load, level := p.Load(); err == nil && load == "rate" && level > 0 && !math.IsInf(level, 1) {
			sum += float64(t.requests) / level * float64(max(s.Repeat, 1))
		}
	}
	return sum
}

// check checks the configuration of a run.
func (s *Set) check(t Trial) error {
	cfg, err := s.config(t, s.Dir, "")
	if err != nil {
		return err
	}
	if err = cfg.Check(); err == nil && !cfg.Virtual {
		_, err = checkOpenFiles(listen.OpenFiles(), 0, cmp.Or(t.requests, cfg.MaxConcurrency), cfg.MaxConcurrency, cfg.Embedded())
	}
	return err
}

// each asks next for one run after another, given the results so far, and executes them. It
// resumes an existing folder. known are all runs, if known in advance.
func (s *Set) each(ctx context.Context, known []Trial, next func(done []Trial) (t Trial, more bool, err error)) ([]Trial, error) {
	w := setRun{s, map[string]string{}}
	folder, err := s.open()
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	for _, t := range known {
		if err := w.checkFolder(ctx, t); err != nil {
			return nil, fmt.Errorf("%v: %w", t.Point, err)
		}
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	if text := s.budget(); text != "" {
		s.Base.Observer.message("%s", text)
	}
	var trials []Trial
	for {
		t, more, err := next(trials)
		if err == nil && !more {
			err = endSet(s.Dir)
		}
		if err != nil || !more {
			return trials, err
		}
		what := t.Point.String()
		if known != nil {
			what = fmt.Sprintf("%d of %d: %v", len(trials)+1, len(known), t.Point)
		}
		if t.requests > 0 {
			what += fmt.Sprintf(", %d requests", t.requests)
		}
		s.Base.Observer.message("run %s", what)
		t.Result, t.Reused, err = w.run(ctx, t)
		if t.Result != nil {
			if s.Each != nil {
				s.Each(t)
			}
			if err == nil {
				trials = append(trials, t)
			}
		}
		if err != nil {
			return trials, fmt.Errorf("%v: %w", t.Point, err)
		}
	}
}

// setRun executes runs of a set.
type setRun struct {
	*Set
	digests map[string]string // of traces, by path
}

// checkFolder checks that the run in the folder of a point, if there is one, sent the
// requests of the point.
func (w *setRun) checkFolder(ctx context.Context, t Trial) error {
	if runfile.CheckFolder(filepath.Join(w.Dir, t.Folder())) == nil {
		return nil
	}
	_, digest, remove, err := w.requests(ctx, t)
	defer remove()
	if err == nil {
		_, err = w.attempt(t, digest)
	}
	return err
}

// requests returns the path of the trace of a run and its digest. If its requests are drawn,
// they are in a file, until the caller calls remove.
func (w *setRun) requests(ctx context.Context, t Trial) (path, digest string, remove func(), err error) {
	remove = func() {}
	if path = w.Base.Trace.Path; path != "" {
		digest, err = w.digest(path)
		return path, digest, remove, err
	}
	cfg, err := w.config(t, "", "")
	if err != nil {
		return "", "", remove, err
	}
	reqs := cfg.Requests
	if reqs == nil {
		reqs, _, err = cfg.draw()
	}
	if err != nil {
		return "", "", remove, err
	}
	dir, remove, err := atomicfile.TemporaryFolder()
	if err != nil {
		return "", "", remove, fmt.Errorf("drawing requests: %w", err)
	}
	path = filepath.Join(dir, t.Folder()+".jsonl")
	if _, err = await(ctx, func() (struct{}, error) { return struct{}{}, writeTrace(path, reqs) }); err == nil {
		digest, err = digestPath(path)
	}
	return path, digest, remove, err
}

func writeTrace(path string, requests trace.Requests) error {
	w, err := format.Create(path)
	if err != nil {
		return err
	}
	if _, err := w.WriteAll(requests); err != nil {
		w.Discard()
		return err
	}
	return w.Close()
}

// digest returns the SHA-256 of a file that all runs replay.
func (w *setRun) digest(path string) (digest string, err error) {
	digest, known := w.digests[path]
	if !known {
		digest, err = digestPath(path)
	}
	if err == nil {
		w.digests[path] = digest
	}
	return digest, err
}

// run executes a run unless it exists already, and measures it.
func (w *setRun) run(ctx context.Context, t Trial) (result *Result, reused bool, err error) {
	path, digest, remove, err := w.requests(ctx, t)
	defer remove()
	if err != nil {
		return nil, false, err
	}
	for repeat := w.RepeatInvalid; ; repeat = false {
		a, err := w.attempt(t, digest)
		if err != nil {
			return nil, false, err
		}
		if a.done {
			w.Base.Observer.message("already done: %s", a.dir)
			result, err := Measure(MeasureConfig{}, a.dir)
			return result, true, err
		}
		cfg, err := w.config(t, a.dir, a.salt)
		if err != nil {
			return nil, false, err
		}
		cfg.Copy = path
		result, err := Run(ctx, cfg)
		if result == nil {
			return nil, false, err
		}
		save := w.Save
		if save == nil {
			save = saveSummary
		}
		err = errors.Join(err, save(result))
		result.Metrics.Detail = nil // large, and needed by the reports only
		if err != nil || !repeat || result.Metrics.Verdict.Level != measure.Invalid {
			return result, false, err
		}
		w.Base.Observer.message("repeating the run: %s is INVALID", a.dir)
	}
}

func saveSummary(r *Result) error {
	var s summary
	s.Completed, s.Own.Verdict = r.Metrics.Completed, r.Metrics.Verdict.Level.String()
	return runfile.WriteJSON(filepath.Join(r.Dir, runfile.SummaryFile), s)
}
