package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/replay/experiment"
	"moontide/trace"
)

// benchQuestion holds the parsed command line.
type benchQuestion struct {
	sweep experiment.SweepConfig
	path  string // of the trace, "" for drawn requests
	view  report.View
	outputs

	find      bool    // search for a load
	low, high float64 // limits of the search, 0 for none
}

func parseBench(c *cli.Context, std streams, stop stop) (q benchQuestion, err error) {
	if q.path, err = benchTrace(c); err != nil {
		return q, err
	}
	if q.find, err = isFind(c); err != nil {
		return q, err
	}
	if err = q.setPlan(c); err != nil {
		return q, err
	}
	if q.outputs, err = outputsOf(c); err != nil {
		return q, err
	}
	if q.sweep.Run, err = sweepConfig(c, std, stop); err != nil {
		return q, err
	}
	if q.view, _, err = viewOf(c); err != nil {
		return q, err
	}
	if q.find {
		if err := checkFind(c, q.view.Gates); err != nil {
			return q, err
		}
	}
	if err := q.setTargets(c); err != nil {
		return q, err
	}
	q.sweep.Run.Flags = commonFlags(c)
	if q.sweep.Dir = q.sweep.Run.Dir; q.sweep.Dir == "" {
		q.sweep.Dir = experiment.NewFolder("runs", "bench")
	}
	return q, nil
}

// benchTrace returns the path of the trace, "" if requests are drawn.
func benchTrace(c *cli.Context) (string, error) {
	described := describedBy(c)
	if c.NArg() == 0 {
		name := firstGivenOf(c, append(slices.Clone(rowFlags), speedupFlag, "format", skipBadRowsFlag.Name)...)
		switch {
		case name != "":
			return "", misused("bench: --%s needs a TRACE: a bench without one draws its own requests; use --concurrency N,N,... or --rate R,R,... with --num-prompts", name)
		case described == "" && !c.IsSet(shapeFlag):
			return "", misused("bench: describe the requests with --isl and --osl, or with --spec, or name a TRACE")
		case c.String(specFlag.Name) == "-":
			return "", misused("bench: --spec must be a file: it is read for each run")
		case c.IsSet(shapeFlag) && firstGivenOf(c, "isl", "unique-isl", "osl") != "":
			return "", misused("bench: --%s and --shape: choose one", firstGivenOf(c, "isl", "unique-isl", "osl"))
		}
		return "", nil
	}
	for _, f := range describeFlags() {
		if name := f.Names()[0]; c.IsSet(name) && !slices.Contains(words("rate arrival burstiness duration"), name) {
			return "", misused("bench: --%s describes requests, and a TRACE has its own", name)
		}
	}
	if c.IsSet(shapeFlag) {
		return "", misused("bench: --shape describes requests, and a TRACE has its own")
	}
	return one(c, "TRACE")
}

// setPlan parses the levels and shapes of a sweep, or the limits of a search.
func (q *benchQuestion) setPlan(c *cli.Context) (err error) {
	plan := &q.sweep.Sweep
	plan.Recorded, plan.Prompts, plan.Ceiling = q.path != "", c.Int(numPromptsFlag), c.Int(maxConcurrencyFlag.Name)
	if q.find {
		q.low, q.high, err = findPlan(c, plan)
	} else {
		err = setLevels(c, plan)
	}
	if err != nil {
		return err
	}
	if plan.Axis == experiment.Concurrency && c.IsSet(maxConcurrencyFlag.Name) {
		return misused("bench: --max-concurrency goes with --rate and --speedup, not with --concurrency")
	}
	if !c.IsSet(shapeFlag) {
		return nil
	}
	if plan.Shapes, err = experiment.ParseShapes(c.String(shapeFlag)); err != nil {
		return misused("bench: --shape: %w", err)
	}
	return nil
}

// setLevels parses the levels of a sweep.
func setLevels(c *cli.Context, plan *experiment.Sweep) (err error) {
	loads := 0
	for flag, axis := range map[string]experiment.Axis{concurrencyFlag: experiment.Concurrency, rateFlag: experiment.Rate, speedupFlag: experiment.Speedup} {
		if c.IsSet(flag) {
			loads, plan.Axis = loads+1, axis
		}
	}
	switch {
	case loads == 0 && plan.Recorded:
		plan.Axis, plan.Levels = experiment.Speedup, []float64{1}
		return nil
	case loads != 1 && plan.Recorded:
		return misused("bench: want one of --speedup, --rate and --concurrency")
	case loads != 1:
		return misused("bench: want either --concurrency or --rate")
	}
	if plan.Levels, err = experiment.ParseLevels(plan.Axis, c.String(string(plan.Axis))); err != nil {
		return misused("bench: --%s: %w", plan.Axis, err)
	}
	return nil
}

// setTargets sets the deployments: URLs, or simulated engines.
func (q *benchQuestion) setTargets(c *cli.Context) (err error) {
	if c.IsSet("url") {
		if q.sweep.Targets, err = experiment.ParseTargets(textsOf(c, "url")); err != nil {
			return misused("bench: --url: %w", err)
		}
		return nil
	}
	run := &q.sweep.Run
	if run.EngineFile, err = engineFileOf(c); err != nil {
		return err
	}
	if text := experiment.HeldOutErrors(run.EngineFile); text != "" {
		run.Observer.Message(text)
	}
	candidates, err := candidatesOf(c, run.EngineFile)
	if err != nil {
		return err
	}
	run.Engines = candidates[0].Deployment
	if len(candidates) == 1 {
		q.sweep.Targets = []experiment.Target{{}}
		return nil
	}
	folderName := strings.NewReplacer(", ", "-", " ", "-", "+", "-")
	for i := range candidates {
		q.sweep.Targets = append(q.sweep.Targets, experiment.Target{Label: folderName.Replace(candidates[i].Name()), Engines: &candidates[i].Deployment})
	}
	return nil
}

// setRequests sets the requests of the runs. The caller calls remove after the runs.
func (q *benchQuestion) setRequests(c *cli.Context, std streams) (remove func(), err error) {
	if q.path == "" {
		return func() {}, q.describe(c, std)
	}
	run := &q.sweep.Run
	if run.Pacing, err = benchPacing(c, q.sweep.Axis); err != nil {
		return nil, err
	}
	t := experiment.Trace{Name: traceName(q.path), BlockSize: c.Int(blockSizeFlag.Name), Format: formatOptions(c)}
	files, remove, err := spoolTraces(std, q.path)
	if err != nil {
		return nil, err
	}
	t.Path = files[0]
	q.sweep.Trace = func(experiment.Leg) (experiment.Trace, error) { return t, nil }
	return remove, nil
}

// benchPacing returns the pacing of a trace in a sweep, whose runs set the load.
func benchPacing(c *cli.Context, axis experiment.Axis) (trace.Pacing, error) {
	p := selectedRows(c)
	if axis != experiment.Rate {
		if name := firstGivenOf(c, "arrival", "burstiness"); name != "" {
			return p, misused("bench: --%s needs --rate", name)
		}
		return p, nil
	}
	p.Arrivals = &trace.Arrivals{Process: trace.Poisson, Rate: 1, Burstiness: 1}
	if c.IsSet("arrival") {
		p.Arrivals.Process = c.String("arrival")
	}
	if c.IsSet("burstiness") {
		k, err := strconv.ParseFloat(c.String("burstiness"), 64)
		if err != nil {
			return p, misused("bench: --burstiness %q is not a number", c.String("burstiness"))
		}
		p.Arrivals.Burstiness = k
	}
	if err := p.Check(); err != nil {
		return p, misused("bench: %w", err)
	}
	return p, nil
}

// describe sets descriptions as the requests of the runs. They differ only in load and
// shape, so the first one has any error.
func (q *benchQuestion) describe(c *cli.Context, std streams) error {
	plan := q.sweep.Sweep
	if q.find {
		plan.Levels = []float64{1}
	}
	for i, leg := range plan.Legs() {
		d, err := legDescription(c, std, leg)
		if err != nil {
			return err
		}
		if i == 0 {
			for _, note := range roundedSharing(d) {
				std.say("%s", note)
			}
		}
	}
	q.sweep.Trace = func(leg experiment.Leg) (experiment.Trace, error) {
		d, err := legDescription(c, std, leg)
		if err != nil {
			return experiment.Trace{}, err
		}
		return experiment.Trace{Name: leg.Name + ".jsonl", Requests: d.Requests(), BlockSize: d.BlockSize()}, nil
	}
	return nil
}
