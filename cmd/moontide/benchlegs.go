package main

import (
	"fmt"
	"io"
	"math"
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

// showSweep prints the runs in a form. A single run is also shown as by replay.
func showSweep(std streams, plan bench.Sweep, sweep report.Sweep, runs []bench.LegResult, view report.View, form string, files outputFiles) error {
	printed, err := files.write(std, map[string]func(io.Writer) error{"png": sweep.PNG})
	if err != nil || printed {
		return err
	}
	if form == "" && len(plan.Levels)*len(plan.Targets) == 1 {
		if err := std.print((report.Runs{reported(runs[0].Result, view)}).Document().WriteText); err != nil {
			return err
		}
		fmt.Fprintln(std.out)
	}
	return printDocument(std, form, sweep.Document(), nil)
}

func sweepReport(c *cli.Context, plan bench.Sweep, runs []bench.LegResult, view report.View) report.Sweep {
	sweep := report.Sweep{Subject: sweepSubject(c, runs[len(runs)-1].Run.Target), Axis: "Concurrency", Percentiles: view.Percentiles}
	if plan.Axis == bench.Rate {
		sweep.Axis = "Request Rate (req/s)"
	}
	for _, t := range plan.Targets {
		d := report.Deployment{Label: t.Label}
		for _, r := range runs {
			if r.Target != t {
				continue
			}
			d.Points = append(d.Points, report.SweepPoint{
				Level: bench.FormatLevel(r.Level), Info: r.Run, Result: r.Metrics, Judgements: reported(r.Result, view).Judgements(),
			})
		}
		sweep.Deployments = append(sweep.Deployments, d)
	}
	return sweep
}

func sweepSubject(c *cli.Context, target runfile.Target) string {
	var words []string
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
