package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/replay/experiment"
)

// Flags of bench --find.
const (
	findWhatFlag    = "find"
	minRequestsFlag = "min-requests"
	maxRunsFlag     = "max-runs"
)

// The loads that bench finds, besides the speedup.
const (
	findRate        = "rate"
	findConcurrency = "concurrency"
)

func findFlags() []cli.Flag {
	return []cli.Flag{
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: findWhatFlag, Category: inGates, Usage: "search for the highest `QUANTITY` that meets --slo: %s; two levels, such as --rate 1,50, set the search range"},
			Choices:    oneOf(findRate, speedupFlag, findConcurrency),
		},
		&cli.IntFlag{Name: minRequestsFlag, Category: inGates, Usage: "minimum number of requests per run of --find", DefaultText: "as many as the percentiles of --slo need, at least 100; 10 times that with --virtual"},
		&cli.IntFlag{Name: maxRunsFlag, Category: inGates, Usage: "maximum number of runs of --find", DefaultText: "20"},
	}
}

// isFind reports whether bench searches for a load. Only a search accepts its flags.
func isFind(c *cli.Context) (bool, error) {
	if c.IsSet(findWhatFlag) {
		return true, nil
	}
	if name := firstGivenOf(c, minRequestsFlag, maxRunsFlag); name != "" {
		return false, misused("bench: --%s needs --find", name)
	}
	return false, nil
}

// findPlan sets the axis of a search and returns the limits of its levels.
func findPlan(c *cli.Context, plan *experiment.Sweep) (low, high float64, err error) {
	what := c.String(findWhatFlag)
	plan.Axis = map[string]experiment.Axis{findRate: experiment.Rate, speedupFlag: experiment.Speedup, findConcurrency: experiment.Concurrency}[what]
	for _, other := range []string{findRate, speedupFlag, findConcurrency} {
		if other != what && c.IsSet(other) {
			return 0, 0, misused("bench: --find %s sets the load: omit --%s", what, other)
		}
	}
	if plan.Axis == experiment.Speedup && !plan.Recorded {
		return 0, 0, misused("bench: --find speedup needs a TRACE: use --find rate")
	}
	if !c.IsSet(what) {
		return 0, 0, nil
	}
	levels, err := experiment.ParseLevels(plan.Axis, c.String(what))
	if err != nil {
		return 0, 0, misused("bench: --%s: %w", what, err)
	}
	if len(levels) != 2 || !(levels[0] < levels[1]) {
		return 0, 0, misused("bench: with --find %s, --%[1]s has the lowest and the highest level to try, such as 1,50: %s", what, c.String(what))
	}
	return levels[0], levels[1], nil
}

// checkFind checks the objectives of a search for the largest load.
func checkFind(c *cli.Context, gates []measure.Gate) error {
	what := c.String(findWhatFlag)
	if len(gates) == 0 {
		return misused("bench: --find %s needs objectives: --slo CONDITIONS, such as --slo 'p99_ttft<2s,p99_tpot<50ms'", what)
	}
	for _, g := range gates {
		if below := g.Op == measure.Less || g.Op == measure.AtMost; below == g.Forbidden &&
			(g.Metric.Unit == measure.RequestsPerSecond || g.Metric.Unit == measure.TokensPerSecond) {
			return misused("bench: --find %s looks for the largest load, and %s holds from a load on: omit it", what, g.Condition)
		}
	}
	return nil
}

// runFind searches for the largest load that meets the objectives.
func runFind(c *cli.Context, std streams, stop stop, q *benchQuestion) error {
	cfg := experiment.LoadSearchConfig{
		SweepConfig: q.sweep, Gates: q.view.Gates, Low: q.low, High: q.high,
		MinRequests: c.Int(minRequestsFlag), MaxLegs: c.Int(maxRunsFlag),
	}
	found, err := experiment.SearchLoad(stop.now, cfg)
	if err != nil {
		err = runError(c, err)
	}
	if len(found) == 0 {
		return err
	}
	err = sweepEnded(std, cfg.Dir, err)
	set := report.SearchOf(sweepSubject(c, found[0].Legs[0].Run.Target), found, q.view)
	if err := errors.Join(err, q.show(std, set)); err != nil {
		return err
	}
	return setOutcome(set)
}
