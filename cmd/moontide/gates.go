package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"moontide/analyze/measure"
	"moontide/analyze/report"
)

// gateHelp explains the conditions in the help of every verb with gates.
const gateHelp = "Gates: --slo CONDITIONS must hold, --fail-if CONDITIONS must not; if a gate fails, the exit status is " +
	"4. A condition is a metric, one of < <= > >=, and a limit: p99_ttft<2s, " +
	"p99_ttft_ms<2000, failed<1%, output_throughput>1000. A condition fails if its metric was not " +
	"measured, or is a percentile with fewer than 5 values beyond it: p99 needs 500 requests."

// gateFlags returns the flags for conditions on runs. force describes further effects of
// --force.
func gateFlags(force string) []cli.Flag {
	return group(inGates,
		repeatable(cli.GenericFlag{Name: "slo", Usage: "`CONDITIONS`: comma-separated conditions that must hold, such as 'p99_ttft<2s,failed<1%'; repeatable"}),
		repeatable(cli.GenericFlag{Name: "fail-if", Usage: "`CONDITIONS`: comma-separated conditions that must not hold, such as 'p99_ttft>2s'; repeatable"}),
		&cli.BoolFlag{Name: "force", Usage: force + "judge percentiles of too few requests and incomplete runs"},
	)
}

// gatesOf parses the gates of a verb. Without objectives there is no goodput.
func gatesOf(c *cli.Context, objectives []measure.Objective) (all []measure.Gate, err error) {
	for _, flag := range []string{"slo", "fail-if"} {
		for _, text := range textsOf(c, flag) {
			conditions, err := measure.ParseConditions(text)
			if err != nil {
				return nil, misused("--%s: %w", flag, err)
			}
			for _, condition := range conditions {
				all = append(all, measure.Gate{Condition: condition, Forbidden: flag == "fail-if", Force: c.Bool("force")})
			}
		}
	}
	for _, g := range all {
		switch {
		case g.Kind != measure.OfValue && c.Command.Name != "compare":
			return nil, misused("%s is a change between two runs: use it with moontide compare", g.Condition)
		case g.Metric.Goodput && findFlag(c.Command.Flags, "goodput") == nil:
			return nil, misused("%s needs objectives: use it with moontide report --goodput", g.Condition)
		case g.Metric.Goodput && objectives == nil:
			return nil, errNoObjectives
		}
	}
	return all, nil
}

var errNoObjectives = misused("goodput needs --goodput OBJECTIVES, such as ttft:2000,tpot:25")

// viewOf parses the flags for what is shown of runs and how they are judged, as far as the
// verb has them.
func viewOf(c *cli.Context) (v report.View, objectives []measure.Objective, err error) {
	if c.IsSet("metrics") {
		if v.Latencies, err = measure.ParseLatencies(c.String("metrics")); err != nil {
			return v, nil, misused("--metrics: %w", err)
		}
	}
	if c.IsSet(percentilesFlag.Name) {
		if v.Percentiles, err = report.ParsePercentiles(c.String(percentilesFlag.Name)); err != nil {
			return v, nil, misused("--%s: %w", percentilesFlag.Name, err)
		}
	}
	if c.IsSet("goodput") {
		if objectives, err = measure.ParseObjectives(c.String("goodput")); err != nil {
			return v, nil, misused("--goodput: %w", err)
		}
	}
	v.Gates, err = gatesOf(c, objectives)
	return v, objectives, err
}

// gateError reports gates that did not pass.
type gateError struct{ error }

// outcomeOf returns the error of reported runs: that of an INVALID run, else that of failed
// gates.
func outcomeOf(runs report.Runs) error {
	if slices.ContainsFunc(runs, func(r report.Run) bool { return r.Result.Verdict.Level == measure.Invalid }) {
		return errInvalid
	}
	var failed []error
	for _, r := range runs {
		name := ""
		if len(runs) > 1 {
			name = r.Name + ": "
		}
		failed = append(failed, failedGates(name, r.Judgements()))
	}
	return errors.Join(failed...)
}

// failedGates returns the error of gates, nil if all passed.
func failedGates(prefix string, all []measure.Judgement) error {
	var failed []error
	for _, j := range measure.Failed(all) {
		failed = append(failed, gateError{fmt.Errorf("failed: %s%s", prefix, j)})
	}
	return errors.Join(failed...)
}
