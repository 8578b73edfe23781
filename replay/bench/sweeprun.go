package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/format"
)

// SweepConfig configures the runs of a sweep.
type SweepConfig struct {
	Sweep
	// Trace returns the requests of a run: a path, which is read for each run, or
	// Requests that are drawn to a file first. Those of a sweep over rates arrive at the
	// run's rate, unless Run.Pacing has Arrivals. In a closed loop their arrivals are
	// ignored.
	Trace func(Leg) (Trace, error)
	// Run configures every run. The sweep sets Trace, URL, Engines of a target,
	// MaxConcurrency, Closed and Dir, the rate of Pacing.Arrivals, the speedup and the
	// limit of Pacing, and derives a different Salt for each run.
	Run Config
	// Dir is the folder of the sweep, with a folder for each run.
	Dir string
	// Save writes the reports of a run to its folder. It must write at least
	// summary.json, which marks the run as done for a resumed sweep. If nil,
	// only that file is written.
	Save func(*Result) error
	// Each, if not nil, is called with each measured run, even if it failed.
	Each func(LegResult)
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
	return RunLegs(ctx, cfg, cfg.Legs())
}

// RunLegs is [RunSweep] for runs that are not levels of cfg.Sweep, which it ignores.
// Calls with the same folder and flags continue each other.
func RunLegs(ctx context.Context, cfg SweepConfig, legs []Leg) ([]LegResult, error) {
	s := sweeper{SweepConfig: cfg, digests: map[string]string{}}
	for _, leg := range legs {
		planned := s.config(leg, attempt{Dir: cfg.Dir})
		planned.Trace.Path = leg.Name
		if err := planned.check(); err != nil {
			return nil, err
		}
		if planned.Virtual {
			continue
		}
		if _, err := checkOpenFiles(openFilesLimit(), cmp.Or(leg.Prompts, leg.MaxConcurrency), leg.MaxConcurrency, planned.embedded()); err != nil {
			return nil, err
		}
	}
	folder, err := openSweep(cfg.Dir, SweepRecord{Version: cfg.Run.Version, Command: cfg.Run.Command, Flags: cfg.Run.Flags})
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	attempts := make([]attempt, len(legs))
	for i, leg := range legs { // check all first: a folder of other runs is an error before anything is sent
		if attempts[i], err = s.locate(ctx, leg); err != nil {
			return nil, err
		}
	}
	results := []LegResult{}
	for i, leg := range legs {
		requests := ""
		if leg.Prompts > 0 {
			requests = fmt.Sprintf(", %d requests", leg.Prompts)
		}
		cfg.Run.Observer.message("run %d of %d: %v%s", i+1, len(legs), leg, requests)
		result, err := s.run(ctx, leg, attempts[i])
		if result != nil {
			done := LegResult{leg, result, attempts[i].Done}
			if cfg.Each != nil {
				cfg.Each(done)
			}
			if err == nil {
				results = append(results, done)
			}
		}
		if err != nil {
			return results, fmt.Errorf("%v: %w", leg, err)
		}
	}
	return results, nil
}

type sweeper struct {
	SweepConfig
	digests map[string]string // of traces, by path
}

// config returns the configuration of a run.
func (s *sweeper) config(leg Leg, a attempt) Config {
	cfg := s.Run
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
		p.Arrivals = &trace.Arrivals{Distribution: trace.Constant, Rate: leg.Level}
	}
	if s.Recorded {
		cfg.Pacing.Limit = leg.Prompts
	}
	cfg.Seed += uint64(leg.Draw)
	cfg.Salt, cfg.Dir, cfg.leg = a.Salt, a.Dir, leg.recorded()
	return cfg
}

// draw writes the trace of a run to a file before the run starts.
func (s *sweeper) draw(ctx context.Context, leg Leg) (t Trace, remove func(), err error) {
	remove = func() {}
	if t, err = s.Trace(leg); err != nil || t.Requests == nil {
		return t, remove, err
	}
	dir, err := os.MkdirTemp("", "moontide-bench-")
	if err != nil {
		return t, remove, fmt.Errorf("drawing requests: %w", err)
	}
	remove = func() { os.RemoveAll(dir) }
	path := filepath.Join(dir, leg.Name+".jsonl")
	_, err = await(ctx, func() (struct{}, error) { return struct{}{}, writeTrace(path, t) })
	if err != nil {
		remove()
		return t, func() {}, err
	}
	t.Path, t.Requests = path, nil
	if leg.Axis == Rate {
		t.DrawnRate = leg.Level
	}
	return t, remove, nil
}

func writeTrace(path string, t Trace) error {
	w, err := format.Create(path)
	if err != nil {
		return err
	}
	if _, err := w.WriteAll(t.Requests); err != nil {
		w.Discard()
		return err
	}
	return w.Close()
}

// locate finds an existing run, or the folder for a new one.
func (s *sweeper) locate(ctx context.Context, leg Leg) (attempt, error) {
	t, remove, err := s.draw(ctx, leg)
	if err != nil {
		return attempt{}, err
	}
	defer remove()
	digest, known := s.digests[t.Path]
	if !known {
		if digest, err = digestPath(t.Path); err != nil {
			return attempt{}, err
		}
		if s.Recorded { // drawn ones are removed
			s.digests[t.Path] = digest
		}
	}
	return leg.findAttempt(s.Dir, s.Run.Salt, digest)
}

// run executes a run unless it exists already, and measures it.
func (s *sweeper) run(ctx context.Context, leg Leg, a attempt) (*Result, error) {
	if a.Done {
		s.Run.Observer.message("already done: %s", a.Dir)
		return Measure(MeasureConfig{}, a.Dir)
	}
	if a.Invalid != "" {
		s.Run.Observer.message("repeating a run: %s is INVALID", a.Invalid)
	}
	t, remove, err := s.draw(ctx, leg)
	if err != nil {
		return nil, err
	}
	defer remove()
	cfg := s.config(leg, a)
	cfg.Trace = t
	result, err := Run(ctx, cfg)
	if result == nil {
		return nil, err
	}
	save := s.Save
	if save == nil {
		save = saveSummary
	}
	err = errors.Join(err, save(result))
	result.Metrics.Detail = nil // large, and needed by the reports only
	return result, err
}

func saveSummary(r *Result) error {
	var s summary
	s.Completed, s.Own.Verdict = r.Metrics.Completed, r.Metrics.Verdict.Level.String()
	return runfile.WriteJSON(filepath.Join(r.Dir, runfile.SummaryFile), s)
}
