package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"moontide/replay/bench/search"
	"moontide/replay/sim/engine"
)

// These are quantities that a [Planner] varies besides Concurrency.
const (
	// Engines is the number of engines of a deployment.
	Engines Axis = "engines"
	// Speedup divides the times of a trace, so that requests arrive faster.
	Speedup Axis = "speedup"
)

// FindConfig describes what to find: the fewest engines, or the highest speedup or
// concurrency, with which a deployment meets the objectives.
type FindConfig struct {
	Axis Axis // Engines, Speedup or Concurrency
	// Low and High limit the levels. 0 means 1 and [engine.MaxEngines] engines, a speedup
	// of 0.001 and 1000, and a concurrency of 1 and of all requests of the trace.
	Low, High float64
}

// Found is the answer to a search for a deployment.
type Found struct {
	Candidate
	Axis   Axis
	Answer search.Answer
	// Trials are the predictions that led to the answer, by level.
	Trials []Prediction
	// Bounded is set if a higher speedup offers no more load, because each turn of a session
	// waits for the one before.
	Bounded bool
}

// AtAnswer returns the prediction at the answer, nil if there is none.
func (f *Found) AtAnswer() *Prediction {
	if !f.Answer.Found {
		return nil
	}
	return f.At(f.Answer.Level)
}

// AtLimit returns the prediction next to the answer that does not meet the gates, nil if
// there is none.
func (f *Found) AtLimit() *Prediction {
	if !f.Answer.Limited {
		return nil
	}
	return f.At(f.Answer.Missed)
}

// At returns the prediction at a level, nil if it was not tried.
func (f *Found) At(level float64) *Prediction {
	for i := range f.Trials {
		if f.Trials[i].level(f.Axis) == level {
			return &f.Trials[i]
		}
	}
	return nil
}

func (p *Prediction) level(a Axis) float64 {
	if a == Engines {
		return float64(p.Total())
	}
	return p.Load.Level
}

// Find searches for the limit of each candidate: the highest load, or the lowest number of
// engines, that meets the gates.
func (p *Planner) Find(ctx context.Context, cfg FindConfig, candidates []Candidate) ([]Found, error) {
	s, err := p.search(cfg)
	if err != nil {
		return nil, err
	}
	for _, g := range p.cfg.Gates {
		if reason := g.TooFewRequests(p.in.plan.Rows); reason != "" {
			return nil, &ConfigError{"", fmt.Errorf("no level meets %v: %s; use a lower percentile or a longer trace", g.Condition, reason)}
		}
	}
	found := make([]Found, len(candidates))
	err = p.inParallel(ctx, len(candidates), func(ctx context.Context, i int) (err error) {
		found[i] = Found{Candidate: candidates[i], Axis: cfg.Axis}
		return p.find(ctx, s, &found[i])
	})
	return found, err
}

// search returns the search for a level.
func (p *Planner) search(cfg FindConfig) (s search.Config, err error) {
	s = search.Config{Goal: search.Largest, Low: cfg.Low, High: cfg.High, Whole: cfg.Axis != Speedup, Resolution: 0.02}
	low, high, start := levelRange(cfg.Axis, min(float64(p.in.plan.Rows), mostConcurrency))
	switch cfg.Axis {
	case Engines:
		s.Goal, s.Resolution, high, start = search.Smallest, 1e-6, engine.MaxEngines, 0
	case Concurrency:
		start = 0
	case Speedup:
		if p.in.plan.DurationMS <= 0 && p.in.plan.Turns == 0 {
			return s, ErrNoRate
		}
	default:
		return s, fmt.Errorf("cannot find %q", cfg.Axis)
	}
	s.Start = start
	if s.Low == 0 {
		s.Low = low
	}
	if s.High == 0 {
		s.High = max(high, s.Low)
	}
	if s.Start != 0 {
		s.Start = min(max(s.Start, s.Low), s.High)
	}
	return s, s.Check()
}

// find searches with one deployment.
func (p *Planner) find(ctx context.Context, s search.Config, f *Found) error {
	var trials []search.Trial
	c := f.Candidate
	for level, ok := s.Next(trials); ok && !f.Bounded; level, ok = s.Next(trials) {
		load := PlanLoad{f.Axis, level}
		if f.Axis == Engines {
			c.Engines, load = int(level), PlanLoad{}
		}
		w, err := p.at(ctx, load)
		if err != nil {
			return err
		}
		predicted, err := p.predict(ctx, c, w)
		if err != nil {
			return err
		}
		half := f.At(level / 2)
		f.Bounded = f.Axis == Speedup && predicted.Met && half != nil && half.Met && predicted.AchievedRate.Value < sameRate*half.AchievedRate.Value
		trials = append(trials, search.Trial{Level: level, Met: predicted.Met})
		f.Trials = append(f.Trials, predicted)
	}
	slices.SortFunc(f.Trials, func(x, y Prediction) int { return cmp.Compare(x.level(f.Axis), y.level(f.Axis)) })
	f.Answer = s.Answer(trials)
	f.Answer.Complete = f.Answer.Complete || f.Bounded
	return nil
}
