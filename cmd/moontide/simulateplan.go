package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/replay/experiment"
	"moontide/replay/sim/fit"
)

// planQuestion holds the parsed command line.
type planQuestion struct {
	view       report.View
	candidates []experiment.Candidate
	run        experiment.Config
	outputs
}

// planTrace simulates the trace on several deployments.
func planTrace(c *cli.Context, std streams, stop stop, path string) error {
	q, err := parsePlan(c, std, stop)
	if err != nil {
		return err
	}
	remove, err := setTrace(c, std, path, &q.run)
	if err != nil {
		return err
	}
	defer remove()
	planner, err := experiment.NewPlanner(stop.gently, experiment.PlanConfig{
		Run: q.run, Metrics: report.PlanMetrics(q.view), Gates: q.view.Gates, Each: sayProgress(std),
	})
	if err != nil {
		return runError(c, ofCopy(err, q.run.Trace.Path, path))
	}
	plan, err := q.predict(stop.gently, planner)
	if err != nil {
		return runError(c, err)
	}
	set := report.PlanOf(plan)
	if err := q.show(std, resultsOf(set)); err != nil {
		return err
	}
	return setOutcome(set)
}

func parsePlan(c *cli.Context, std streams, stop stop) (q planQuestion, err error) {
	if q.view, _, err = viewOf(c); err != nil {
		return q, err
	}
	if q.outputs, err = outputsOf(c); err != nil {
		return q, err
	}
	file, err := engineFileOf(c)
	if err != nil {
		return q, err
	}
	if q.candidates, err = candidatesOf(c, file); err != nil {
		return q, err
	}
	q.run = virtualRunConfig(c, std, stop)
	if q.run.EngineFile = file; q.run.Dir != "" {
		return q, misused("simulate: --out is for one deployment: several are simulated in memory; bench --virtual writes run folders of several")
	}
	return q, nil
}

// sayProgress returns a function that prints the number of simulated runs every few seconds.
func sayProgress(std streams) func(experiment.Prediction) {
	var runs atomic.Int64
	said := time.Now()
	return func(experiment.Prediction) {
		n := runs.Add(1)
		if now := time.Now(); now.Sub(said) >= quietEvery {
			said = now
			std.say("%d runs simulated", n)
		}
	}
}

func (q *planQuestion) predict(ctx context.Context, planner *experiment.Planner) (plan report.Plan, err error) {
	plan = report.Plan{View: q.view, Notes: planner.Notes(), HeldOut: heldOutErrors(q.run.EngineFile, report.PlanMetrics(q.view))}
	plan.Trace, plan.Requests = planner.Trace()
	plan.Predictions, err = planner.Predict(ctx, q.candidates)
	return plan, err
}

// heldOutErrors returns the errors of the metrics that engines of a file predict, on held-out
// measurements.
func heldOutErrors(file *fit.File, metrics []measure.Metric) map[string]float64 {
	errors := map[string]float64{}
	for _, m := range metrics {
		if share, known := file.HeldOutError(m.Key); known {
			errors[m.Key] = share
		}
	}
	return errors
}
