package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"moontide/analyze/measure"
	"moontide/replay/listen"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/atomicfile"
	"moontide/trace/format"
)

// SweepConfig configures the runs of a sweep.
type SweepConfig struct {
	Sweep
	// Trace returns the requests of a run: a path, or Requests that are first drawn to a
	// file. In a sweep over rates they arrive at the run's rate, unless Run.Pacing has
	// Arrivals. A closed loop ignores their arrivals.
	Trace func(Leg) (Trace, error)
	// Run configures every run. The sweep sets Trace, URL, Engines, MaxConcurrency, Closed,
	// Dir, and the rate, speedup and limit of Pacing, and derives a Salt for each run.
	Run Config
	// Dir is the folder of the sweep, with a folder for each run. Calls with the same
	// folder and flags continue each other.
	Dir string
	// Save writes the reports of a run to its folder: at least summary.json, which marks
	// the run as done for a resumed sweep. nil writes only that file.
	Save func(*Result) error
	// Each, if not nil, is called with each measured run, even if it failed.
	Each func(LegResult)

	keepInvalid   bool // an INVALID run counts
	repeatInvalid bool // an INVALID run is repeated once, at once
}

// LegResult is a measured run of a sweep.
type LegResult struct {
	Leg
	*Result
	Found bool // the run existed already
}

// RunSweep executes the runs of a sweep that are not in its folder yet, and
// measures all of them. It stops at the first failure and returns the runs
// before it, or nil if none was started. A [*ConfigError] reports an invalid
// configuration.
func RunSweep(ctx context.Context, cfg SweepConfig) ([]LegResult, error) {
	if cfg.Prompts == 0 && !cfg.Recorded && cfg.Axis == Rate && slices.Contains(cfg.Levels, math.Inf(1)) {
		return nil, wrong("NumPrompts", "is needed with an infinite rate")
	}
	return cfg.runAll(ctx, cfg.Legs())
}

// runAll checks all runs of a list, also those that exist already, then executes them.
func (c SweepConfig) runAll(ctx context.Context, legs []Leg) ([]LegResult, error) {
	for _, leg := range legs {
		if err := c.check(leg); err != nil {
			return nil, err
		}
	}
	return c.runEach(ctx, legs, func(done []LegResult) (leg Leg, more bool, err error) {
		if len(done) == len(legs) {
			return leg, false, nil
		}
		return legs[len(done)], true, nil
	})
}

// check checks the configuration of a run.
func (c SweepConfig) check(leg Leg) error {
	planned := c.config(leg, attempt{Dir: c.Dir})
	planned.Trace.Path = leg.Name
	err := planned.Check()
	if err == nil && !planned.Virtual {
		_, err = checkOpenFiles(listen.OpenFiles(), 0, cmp.Or(leg.Prompts, leg.MaxConcurrency), leg.MaxConcurrency, planned.embedded())
	}
	return err
}

// runEach asks next for one run after another, given the results so far, and executes
// them. It resumes an existing folder. known are all runs, if known in advance.
func (c SweepConfig) runEach(ctx context.Context, known []Leg, next func(done []LegResult) (leg Leg, more bool, err error)) ([]LegResult, error) {
	s := sweeper{c, map[string]string{}}
	folder, err := openSweep(c.Dir, SweepRecord{Version: c.Run.Version, Command: c.Run.Command, Flags: c.Run.Flags})
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	for _, leg := range known {
		if err := s.checkFolder(ctx, leg); err != nil {
			return nil, fmt.Errorf("%v: %w", leg, err)
		}
	}
	var results []LegResult
	for {
		leg, more, err := next(results)
		if err == nil && !more {
			err = endSweep(c.Dir)
		}
		if err != nil || !more {
			return results, err
		}
		what := fmt.Sprint(leg)
		if known != nil {
			what = fmt.Sprintf("%d of %d: %v", len(results)+1, len(known), leg)
		}
		if leg.Prompts > 0 {
			what += fmt.Sprintf(", %d requests", leg.Prompts)
		}
		c.Run.Observer.message("run %s", what)
		result, found, err := s.run(ctx, leg)
		if result != nil {
			done := LegResult{leg, result, found}
			if c.Each != nil {
				c.Each(done)
			}
			if err == nil {
				results = append(results, done)
			}
		}
		if err != nil {
			return results, fmt.Errorf("%v: %w", leg, err)
		}
	}
}

type sweeper struct {
	SweepConfig
	digests map[string]string // of traces, by path
}

// config returns the configuration of a run.
func (c *SweepConfig) config(leg Leg, a attempt) Config {
	cfg := c.Run
	cfg.Client.URL, cfg.Client.URLs = leg.Target.URL, nil
	if leg.Target.Engines != nil {
		cfg.Engines = *leg.Target.Engines
	}
	cfg.MaxConcurrency, cfg.Closed = leg.MaxConcurrency, leg.Axis == Concurrency
	switch p := &cfg.Pacing; {
	case leg.Axis == Speedup:
		p.Speedup = leg.Level
	case leg.Axis == Rate && p.Arrivals != nil:
		arrivals := *p.Arrivals
		arrivals.Rate, p.Arrivals = leg.Level, &arrivals
	case math.IsInf(leg.Level, 1):
		p.Arrivals = &trace.Arrivals{Process: trace.Constant, Rate: leg.Level}
	}
	if c.Recorded {
		cfg.Pacing.Limit = leg.Prompts
	}
	if n := leg.Unmeasured; n > 0 {
		cfg.Window = runfile.Window{WarmupRequests: warmupRounds * n, CooldownRequests: n}
	}
	cfg.Seed += uint64(leg.Draw)
	cfg.Salt, cfg.Dir, cfg.leg = a.Salt, a.Dir, leg.recorded()
	return cfg
}

// checkFolder checks that the run in the folder of a leg, if there is one, sent the
// requests of the leg.
func (s *sweeper) checkFolder(ctx context.Context, leg Leg) error {
	if runfile.CheckFolder(filepath.Join(s.Dir, leg.Name)) == nil {
		return nil
	}
	_, digest, remove, err := s.draw(ctx, leg)
	defer remove()
	if err == nil {
		_, err = leg.findAttempt(s.Dir, s.Run.Salt, digest, s.keepInvalid)
	}
	return err
}

// draw returns the trace of a run and its digest. If its requests are drawn, they are in
// a file, until the caller calls remove.
func (s *sweeper) draw(ctx context.Context, leg Leg) (t Trace, digest string, remove func(), err error) {
	remove = func() {}
	if t, err = s.Trace(leg); err != nil {
		return t, "", remove, err
	}
	if t.Requests == nil {
		digest, err = s.digest(t.Path)
		return t, digest, remove, err
	}
	dir, remove, err := atomicfile.TemporaryFolder()
	if err != nil {
		return t, "", remove, fmt.Errorf("drawing requests: %w", err)
	}
	path := filepath.Join(dir, leg.Name+".jsonl")
	requests := t.Requests
	_, err = await(ctx, func() (struct{}, error) { return struct{}{}, writeTrace(path, requests) })
	t.Path, t.Requests = path, nil
	if leg.Axis == Rate {
		t.DrawnRate = leg.Level
	}
	if err == nil {
		digest, err = s.digest(path)
	}
	return t, digest, remove, err
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

// digest returns the SHA-256 of a trace. Those of files that all runs replay are kept.
func (s *sweeper) digest(path string) (digest string, err error) {
	digest, known := s.digests[path]
	if !known {
		digest, err = digestPath(path)
	}
	if err == nil && s.Recorded {
		s.digests[path] = digest
	}
	return digest, err
}

// run executes a run unless it exists already, and measures it.
func (s *sweeper) run(ctx context.Context, leg Leg) (result *Result, found bool, err error) {
	t, digest, remove, err := s.draw(ctx, leg)
	defer remove()
	if err != nil {
		return nil, false, err
	}
	for repeat := s.repeatInvalid; ; repeat = false {
		a, err := leg.findAttempt(s.Dir, s.Run.Salt, digest, s.keepInvalid)
		if err != nil {
			return nil, false, err
		}
		if a.Done {
			s.Run.Observer.message("already done: %s", a.Dir)
			result, err := Measure(MeasureConfig{}, a.Dir)
			return result, true, err
		}
		cfg := s.config(leg, a)
		cfg.Trace = t
		result, err := Run(ctx, cfg)
		if result == nil {
			return nil, false, err
		}
		save := s.Save
		if save == nil {
			save = saveSummary
		}
		err = errors.Join(err, save(result))
		result.Metrics.Detail = nil // large, and needed by the reports only
		if err != nil || !repeat || result.Metrics.Verdict.Level != measure.Invalid {
			return result, false, err
		}
		s.Run.Observer.message("repeating the run: %s is INVALID", a.Dir)
	}
}

func saveSummary(r *Result) error {
	var s summary
	s.Completed, s.Own.Verdict = r.Metrics.Completed, r.Metrics.Verdict.Level.String()
	return runfile.WriteJSON(filepath.Join(r.Dir, runfile.SummaryFile), s)
}
