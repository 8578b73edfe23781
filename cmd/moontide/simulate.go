package main

import (
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/replay/experiment"
	"moontide/replay/settings"
	"moontide/replay/sim/fit"
)

func simulateCommand(std streams, stop stop) *cli.Command {
	d, flags := newCommandLine(engineAxes, func(row *settings.Setting) bool {
		return !row.File && row.Mode != settings.Live && row.Group != settings.Descriptions && row.Name != "dataset"
	})
	return &cli.Command{
		Usage: "replay a trace against simulated engines in virtual time (an hour takes about a second)",
		Description: "The default engines approximate Llama 3.1 8B in FP8 on one H100. The run folder has the same files as that " +
			"of a replay, so all reports work on it.\n\n" +
			"Engine flags for whole numbers accept lists and ranges, such as 1,2,4 or 1..16 or 4..16..4, and --routing " +
			"accepts a list of policies. All combinations are simulated in memory and compared in a table, which names the " +
			"smallest deployment that meets --slo; --engines can be combined with --prefill-engines and --decode-engines. " +
			"With a fitted --engine FILE, answers carry the error of its predictions on held-out measurements. The exit " +
			"status is 4 if no deployment meets the conditions.\n\n" +
			gateHelp,
		Flags:  append(append(flags, fileFlags()...), runOutputFlags()...),
		Action: func(c *cli.Context) error { return simulateTrace(c, std, stop, d) },
	}
}

func simulateTrace(c *cli.Context, std streams, stop stop, d *commandLine) error {
	if err := d.complete(c); err != nil {
		return err
	}
	d.Virtual = true
	cfg := experiment.Config{}
	remove, err := setTrace(c, std, d, &cfg)
	if err != nil {
		return err
	}
	defer remove()
	if len(d.axes) > 0 {
		return planTrace(c, std, stop, d, cfg)
	}
	return runTrace(c, std, stop, d, cfg)
}

// planTrace simulates the trace on several deployments.
func planTrace(c *cli.Context, std streams, stop stop, d *commandLine, cfg experiment.Config) error {
	view, err := viewOf(c, &d.Settings)
	if err != nil {
		return err
	}
	out, err := outputsOf(c)
	if err != nil {
		return err
	}
	if d.Output.Dir != "" {
		return misused("--out is for one deployment: several are simulated in memory")
	}
	points, err := d.deployments()
	if err != nil {
		return err
	}
	d.Settings.Unset(engineCounts...) // they are in the points
	if err := configure(c, std, stop, d, &cfg); err != nil {
		return err
	}
	candidates, err := experiment.Candidates(cfg, points)
	if err != nil {
		return d.misuse(err)
	}
	planner, err := experiment.NewPlanner(stop.gently, experiment.PlanConfig{
		Run: cfg, Metrics: report.PlanMetrics(view), Gates: view.Gates, Each: sayProgress(std),
	})
	if err != nil {
		return d.ended(err)
	}
	plan := report.Plan{View: view, Notes: planner.Notes(), HeldOut: heldOutErrors(d.file, report.PlanMetrics(view))}
	plan.Trace, plan.Requests = planner.Trace()
	if plan.Predictions, err = planner.Predict(stop.gently, candidates); err != nil {
		return d.ended(err)
	}
	set := report.PlanOf(plan)
	if err := out.show(std, resultsOf(set)); err != nil {
		return err
	}
	return setOutcome(set)
}

// engineCounts are the settings of numbers of engines.
var engineCounts = words("engines prefill-engines decode-engines")

// deployments returns the points of all combinations of the axes: first with numbers of
// engines, then with numbers of prefill and decode engines.
func (d *commandLine) deployments() (points []experiment.Point, err error) {
	var others []experiment.Axis
	counts := map[string]experiment.Axis{}
	for _, name := range engineCounts {
		if from, set := d.From(name); set && from != "" {
			counts[name] = experiment.Axis{Setting: name, Values: []string{settings.Find(name).Text(&d.Settings)}}
		}
	}
	for _, axis := range d.axes {
		if _, is := counts[axis.Setting]; is {
			counts[axis.Setting] = axis
		} else {
			others = append(others, axis)
		}
	}
	if axis, ok := counts["engines"]; ok {
		points = append(points, experiment.Combine(nil, append(others[:len(others):len(others)], axis)...)...)
	}
	var apart []experiment.Axis
	for _, name := range engineCounts[1:] {
		if axis, ok := counts[name]; ok {
			apart = append(apart, axis)
		}
	}
	switch {
	case len(apart) == 1 && d.EngineFile == "":
		return nil, misused("--prefill-engines and --decode-engines go together")
	case len(apart) > 0:
		points = append(points, experiment.Combine(nil, append(others, apart...)...)...)
	}
	if len(counts) == 0 {
		points = experiment.Combine(nil, others...)
	}
	return points, nil
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
