package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/analyze/run"
	"moontide/replay/bench"
	"moontide/replay/runfile"
	"moontide/synth/spec"
)

// legDescription returns the description from which the requests of a run are
// drawn, the same as moontide synth would use with these flags.
func legDescription(c *cli.Context, std streams, leg bench.Leg) (*spec.Spec, error) {
	own := map[string]string{rateFlag: "", durationFlag.Name: "", "num-requests": strconv.Itoa(leg.Prompts)}
	if leg.Axis == bench.Rate && !math.IsInf(leg.Level, 1) {
		own[rateFlag] = bench.FormatLevel(leg.Level)
	}
	if leg.Shape != (bench.Shape{}) {
		own["isl"], own["osl"] = strconv.Itoa(leg.Shape.ISL), strconv.Itoa(leg.Shape.OSL)
	}
	if leg.Draw > 0 {
		own["seed"] = strconv.FormatUint(c.Uint64("seed")+uint64(leg.Draw), 10)
	}
	return readDescription(c, std, own)
}

func sayLeg(std streams, r bench.LegResult) {
	if r.Metrics.Completed+r.Metrics.Failed == 0 {
		return
	}
	std.say("%s", report.SweepLine(r.Metrics))
	if r.Metrics.Cache.Prediction.Causes[run.Warm].Requests > 0 {
		std.say("the server's cache has prompts of an earlier run; use another --salt and --out")
	}
}

// show prints the runs in a form. A single run is also shown as by replay.
func (q *benchQuestion) show(std streams, sweep report.Sweep, runs []bench.LegResult) error {
	reports := reportedLegs(runs, q.view)
	shown := results{
		document: sweep.Document,
		forms:    map[string]func(io.Writer) error{"json": reports.WriteOutcome},
		files:    map[string]func(io.Writer) error{"junit": reports.JUnit},
	}
	printed, err := q.write(std, shown)
	if err != nil || printed {
		return err
	}
	if q.form == "" && len(q.sweep.Legs()) == 1 {
		if err := std.printText(reports.Document()); err != nil {
			return err
		}
		fmt.Fprintln(std.out)
	}
	return q.print(std, shown)
}

func reportedLegs(runs []bench.LegResult, view report.View) (all report.Runs) {
	for _, r := range runs {
		all = append(all, reported(r.Result, view))
	}
	return all
}

// sweepReport returns the report of runs: deployments and shapes in the order in which
// they occur.
func sweepReport(subject string, runs []bench.LegResult, view report.View) report.Sweep {
	sweep := report.Sweep{Subject: subject, Axis: runs[0].Axis, Percentiles: view.Percentiles}
	for _, r := range runs {
		label, shape := r.Target.Label, r.Shape.String()
		i := slices.IndexFunc(sweep.Deployments, func(d report.Deployment) bool { return d.Label == label && d.Shape == shape })
		if i < 0 {
			i = len(sweep.Deployments)
			sweep.Deployments = append(sweep.Deployments, report.Deployment{Label: label, Shape: shape})
		}
		d := &sweep.Deployments[i]
		d.Points = append(d.Points, report.SweepPoint{
			Level: bench.FormatLevel(r.Level), Info: r.Run, Result: r.Metrics, Judgements: reported(r.Result, view).Judgements(),
		})
	}
	return sweep
}

func sweepSubject(c *cli.Context, target runfile.Target) string {
	var words []string
	if c.NArg() > 0 {
		words = append(words, traceName(c.Args().First()))
	}
	for _, f := range describeFlags() {
		name := f.Names()[0]
		if name == rateFlag || name == durationFlag.Name || !c.IsSet(name) {
			continue
		}
		label := name
		if name == "isl" || name == "osl" {
			label = strings.ToUpper(name)
		}
		words = append(words, label+" "+c.String(name))
	}
	model := "model " + target.Model
	switch {
	case target.Virtual:
		model = "simulated in virtual time"
	case target.Simulated:
		model += " on the embedded simulated endpoint"
	}
	return strings.Join(append(words, model), ", ")
}
