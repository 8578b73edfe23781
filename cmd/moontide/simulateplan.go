package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/analyze/run"
	"moontide/replay/bench"
)

// What simulate finds.
const (
	findEngines     = "engines"
	findRate        = "rate"
	findConcurrency = "concurrency"
)

// isPlan reports whether simulate compares several deployments, or finds one.
func isPlan(c *cli.Context) bool { return c.IsSet(findWhatFlag) || len(choicesOf(c)) > 1 }

// planQuestion holds the parsed command line.
type planQuestion struct {
	view       report.View
	find       bench.FindConfig // of Axis "" without a search
	candidates []bench.Candidate
	run        bench.Config
	output
	dir string // for run folders, "" for none
}

// planTrace predicts what several deployments would do with the trace.
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
	planner, err := bench.NewPlanner(stop.gently, bench.PlanConfig{
		Run: q.run, Metrics: report.PlanMetrics(q.view), Gates: q.view.Gates, Each: sayProgress(std),
	})
	if err != nil {
		return runError(c, ofCopy(err, q.run.Trace.Path, path))
	}
	plan, err := q.predict(stop.gently, planner)
	if err != nil {
		return planError(c, err)
	}
	if q.dir != "" {
		if err := q.writeRuns(c, std, stop, planner, plan); err != nil {
			return err
		}
	}
	if err := q.show(std, resultsOf(plan)); err != nil {
		return err
	}
	return planOutcome(plan)
}

func parsePlan(c *cli.Context, std streams, stop stop) (q planQuestion, err error) {
	if q.view, err = viewOf(c); err != nil {
		return q, err
	}
	if q.find, err = findOf(c, q.view.Gates); err != nil {
		return q, err
	}
	if q.output, err = outputOf(c, words("json csv markdown"), "html", "png"); err != nil {
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
	q.run.EngineFile, q.dir, q.run.Dir = file, q.run.Dir, ""
	return q, nil
}

// findOf parses --find. A search needs objectives, and sets what it varies.
func findOf(c *cli.Context, gates []run.Gate) (f bench.FindConfig, err error) {
	what := c.String(findWhatFlag)
	if what == "" {
		return f, nil
	}
	if err := checkFind(c, gates); err != nil {
		return f, err
	}
	refused := map[string]string{
		findEngines:     "prefill-engines decode-engines",
		findRate:        "speedup closed",
		findConcurrency: "max-concurrency closed rate session-rate speedup ramp spread-grid max-sessions",
	}
	for _, name := range words(refused[what]) {
		switch {
		case !c.IsSet(name):
		case what == findEngines:
			return f, misused("simulate: --find engines varies --engines: for --%s, give lists with --prefill-engines and --decode-engines and no --find; "+
				"the table names the smallest deployment that meets --slo", name)
		default:
			return f, misused("simulate: --find %s sets the load: omit --%s", what, name)
		}
	}
	if what == findRate && math.IsInf(c.Float64(rateFlag), 1) {
		return f, misused("simulate: --find rate scales the arrivals, and --rate inf has none")
	}
	f.Axis = map[string]bench.Axis{findEngines: bench.Engines, findRate: bench.Speedup, findConcurrency: bench.Concurrency}[what]
	if what == findEngines && c.IsSet("engines") {
		return enginesRange(c, f)
	}
	return f, nil
}

// enginesRange makes the list of --engines the range of a search.
func enginesRange(c *cli.Context, f bench.FindConfig) (bench.FindConfig, error) {
	text := c.String("engines")
	counts, _ := bench.ParseCounts(text, math.MaxInt32) // checked with the flag
	last := len(counts) - 1
	if last == 0 || counts[last]-counts[0] != last {
		return f, misused("simulate: with --find engines, --engines is the range to search, such as 1..64: %s", text)
	}
	f.Low, f.High = float64(counts[0]), float64(counts[last])
	return f, nil
}

// sayProgress returns a function that says every few seconds how many runs have been
// simulated.
func sayProgress(std streams) func(bench.Prediction) {
	var runs atomic.Int64
	said := time.Now()
	return func(bench.Prediction) {
		n := runs.Add(1)
		if now := time.Now(); now.Sub(said) >= quietEvery {
			said = now
			std.say("%d runs simulated", n)
		}
	}
}

func (q *planQuestion) predict(ctx context.Context, planner *bench.Planner) (plan report.Plan, err error) {
	plan = report.Plan{Metrics: report.PlanMetrics(q.view), Gates: q.view.Gates, Notes: planner.Notes()}
	plan.Trace, plan.Requests = planner.Trace()
	for _, m := range plan.Metrics {
		if share, known := q.run.EngineFile.HeldOutError(m.Key); known {
			if plan.HeldOut == nil {
				plan.HeldOut = map[string]float64{}
			}
			plan.HeldOut[m.Key] = share
		}
	}
	if q.find.Axis == "" {
		plan.Predictions, err = planner.Predict(ctx, q.candidates)
		return plan, err
	}
	candidates := q.candidates
	if q.find.Axis == bench.Engines {
		candidates = variants(candidates)
	}
	if plan.Found, err = planner.Find(ctx, q.find, candidates); err != nil {
		return plan, err
	}
	for i := range plan.Found {
		plan.Predictions = append(plan.Predictions, plan.Found[i].Trials...)
	}
	return plan, nil
}

// variants returns one candidate of those that differ in their number of engines only.
func variants(all []bench.Candidate) (kept []bench.Candidate) {
	seen := map[string]bool{}
	for _, c := range all {
		if !seen[c.Variant] {
			kept = append(kept, c)
		}
		seen[c.Variant] = true
	}
	return kept
}

func planError(c *cli.Context, err error) error {
	if errors.Is(err, bench.ErrNoRate) {
		return misused("simulate: --find rate: %w: give the trace arrivals with --rate", err)
	}
	return runError(c, err)
}

// writeRuns writes a run folder for each deployment or, after a search, for each answer.
func (q *planQuestion) writeRuns(c *cli.Context, std streams, stop stop, planner *bench.Planner, plan report.Plan) error {
	runs := plan.Predictions
	if plan.Found != nil {
		runs = nil
		for i := range plan.Found {
			if at := plan.Found[i].AtAnswer(); at != nil {
				runs = append(runs, *at)
			}
		}
	}
	for i := range runs {
		cfg := planner.RunConfig(&runs[i])
		cfg.Dir = filepath.Join(q.dir, folderName(report.PredictionName(&runs[i])))
		result, err := bench.Run(stop.now, cfg)
		if result != nil {
			err = errors.Join(err, saveReports(std, result, q.view))
		}
		if err != nil {
			return runError(c, err)
		}
	}
	if len(runs) > 0 {
		std.say("the run folders are in %s", q.dir)
	}
	return nil
}

// folderName makes the name of a deployment the name of a folder.
func folderName(name string) string {
	return strings.NewReplacer(", ", "-", " ", "-", "+", "-").Replace(name)
}

// planOutcome returns an error if no deployment meets the objectives, or if a search has
// no answer.
func planOutcome(plan report.Plan) error {
	if len(plan.Gates) == 0 {
		return nil
	}
	if text := plan.Unmet(); text != "" {
		return gateError{fmt.Errorf("%s", text)}
	}
	return nil
}
