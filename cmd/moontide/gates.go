package main

import (
	"errors"
	"fmt"
	"slices"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/analyze/slo"
)

// gateHelp explains the conditions in the help of every verb with gates.
const gateHelp = "Gates: --slo CONDITIONS must hold, --fail-if CONDITIONS must not; if a gate fails, the exit status is " +
	"4. A condition is a metric, one of < <= > >=, and a limit: p99_ttft<2s, " +
	"p99_ttft_ms<2000, failed<1%, output_throughput>1000. A condition fails if its metric was not " +
	"measured, or is a percentile with fewer than 5 values beyond it: p99 needs 500 requests."

var errNoObjectives = misused("goodput needs --goodput OBJECTIVES, such as ttft:2000,tpot:25")

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
func failedGates(prefix string, all []slo.Judgement) error {
	var failed []error
	for _, j := range slo.Failed(all) {
		failed = append(failed, gateError{fmt.Errorf("failed: %s%s", prefix, j)})
	}
	return errors.Join(failed...)
}
