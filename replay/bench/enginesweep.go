package bench

import (
	"context"
	"slices"

	"moontide/analyze/run"
)

// EngineSweepConfig configures the runs that identify the costs of an engine.
type EngineSweepConfig struct {
	Limits EngineLimits
	// Run configures every run. The sweep sets Trace, MaxConcurrency, Closed and Dir,
	// and derives a different Salt for each run, so that no prompt is cached.
	Run    Config
	Target Target
	Dir    string // of the sweep, with a folder for each run
	Save   func(*Result) error
	// Plan is called with the runs before they are sent.
	Plan func([]EngineRun)
	Each func(LegResult)
}

// EngineLeg is a measured run of a plan.
type EngineLeg struct {
	EngineRun
	*Result
}

// RunEngineSweep measures an engine with the runs of [PlanEngineRuns]. Runs that are
// INVALID are repeated once. The same configuration continues what is in the folder.
func RunEngineSweep(ctx context.Context, cfg EngineSweepConfig) ([]EngineLeg, error) {
	runs, err := PlanEngineRuns(cfg.Limits)
	if err != nil {
		return nil, err
	}
	if cfg.Plan != nil {
		cfg.Plan(runs)
	}
	legs, err := cfg.run(ctx, runs)
	if err != nil {
		return legs, err
	}
	return cfg.repeatInvalid(ctx, legs)
}

// repeatInvalid repeats the runs that are INVALID once, in folders of their own.
func (c *EngineSweepConfig) repeatInvalid(ctx context.Context, legs []EngineLeg) ([]EngineLeg, error) {
	var invalid []EngineRun
	for _, leg := range legs {
		if leg.Metrics.Verdict.Level == run.Invalid {
			invalid = append(invalid, leg.EngineRun)
		}
	}
	if invalid == nil {
		return legs, nil
	}
	again, err := c.run(ctx, invalid)
	for _, leg := range again {
		i := slices.IndexFunc(legs, func(l EngineLeg) bool { return l.Name == leg.Name })
		legs[i] = leg
	}
	return legs, err
}

// run executes the runs that are not in the folder yet.
func (c *EngineSweepConfig) run(ctx context.Context, runs []EngineRun) ([]EngineLeg, error) {
	byName := map[string]EngineRun{}
	var legs []Leg
	for i := range runs {
		runs[i].Target = c.Target
		byName[runs[i].Name] = runs[i]
		legs = append(legs, runs[i].Leg)
	}
	results, err := RunLegs(ctx, SweepConfig{
		Run: c.Run, Dir: c.Dir, Save: c.Save, Each: c.Each,
		Trace: func(leg Leg) (Trace, error) { return byName[leg.Name].Trace(), nil },
	}, legs)
	var measured []EngineLeg
	for _, r := range results {
		measured = append(measured, EngineLeg{byName[r.Name], r.Result})
	}
	return measured, err
}
