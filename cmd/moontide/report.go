package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
)

func reportCommand(std streams, _ stop) *cli.Command {
	return &cli.Command{
		Usage: "report the metrics of runs or sweeps from their folders, even if a run was killed",
		Description: "Several runs are reported one after another, with tables and figures side by side; LABEL=RUN labels a " +
			"run. Sweeps of moontide bench are shown as one table and figure, with the ratios to the first.\n\n" +
			"Measurement window and thresholds default to those of the run. Run folders are not changed. The exit status " +
			"is 3 if a run is INVALID.\n\n" +
			"Metrics: " + strings.Join(metricNames(), ", ") + ". Objectives use the same names, in milliseconds; for itl " +
			"and itl_per_token they limit the longest gap of a request.\n\n" +
			gateHelp,
		Flags: append(slices.Concat(thresholdFlags(), gateFlags(""), reportOutputFlags()),
			serverBlockSizeFlag, warmupTimeFlag, cooldownTimeFlag,
			&choiceFlag{
				StringFlag: cli.StringFlag{Name: "metrics", Category: inOutput, DefaultText: "ttft,tpot,itl,e2el", Usage: "`METRICS`: comma-separated metrics to show"},
				Choices:    choiceSet{Names: metricNames(), List: true, Open: true},
			},
			percentilesFlag,
			&cli.StringFlag{Name: "goodput", Category: inOutput, Usage: "count the requests that meet `OBJECTIVES`, such as ttft:2000,tpot:25,e2el:30000"},
		),
		Action: func(c *cli.Context) error { return reportRuns(c, std) },
	}
}

// The forms of other tools, and of one run.
const (
	vllmForm     = "vllm"
	dynamoForm   = "dynamo"
	morehForm    = "moreh"
	aiperfForm   = "aiperf"
	missesForm   = "cache-misses"
	overTimeForm = "over-time"
)

func reportOutputFlags() []cli.Flag {
	return outputFlags(oneOf(append(words("json markdown csv html png junit"), vllmForm, dynamoForm, morehForm, aiperfForm, missesForm, overTimeForm)...).
		Noted("csv", "a line per run").
		Noted("junit", "verdict and gates as XML").
		Noted(vllmForm, "its result block").
		Noted(dynamoForm, "the block of its recipes, with ITL per request").
		Noted(morehForm, "the block of its saturation runs").
		Noted(aiperfForm, "profile_export.jsonl, which has no verdict").
		Noted(missesForm, "predicted and measured prefix cache hits of each request, as CSV").
		Noted(overTimeForm, "throughput, concurrency, TTFT and lag over time, as CSV"))
}

func reportRuns(c *cli.Context, std streams) error {
	if c.NArg() == 0 {
		return misused("name a run's folder, or several")
	}
	inputs := namedInputs(slices.DeleteFunc(c.Args().Slice(), func(arg string) bool {
		return c.NArg() > 1 && filepath.Base(arg) == experiment.SweepFile // a shell's sweep/*
	}))
	view, objectives, err := viewOf(c)
	if err != nil {
		return err
	}
	out, err := outputsOf(c)
	if err != nil {
		return err
	}
	for form, block := range blockForms {
		if flag, ok := out.has(form); ok {
			if err := block.Check(view); err != nil {
				return misused("--metrics: %s: %w", flag, err)
			}
		}
	}
	ofOne, oneOnly := out.has(missesForm, overTimeForm)
	ofRuns, runsOnly := out.has(vllmForm, dynamoForm, morehForm, aiperfForm, missesForm, overTimeForm)
	sweeps := 0
	for _, in := range inputs {
		if experiment.IsSweep(in.path) {
			sweeps++
		}
	}
	switch {
	case oneOnly && len(inputs) > 1:
		return misused("%s shows one run", ofOne)
	case sweeps == 0:
		return reportEach(c, std, inputs, experiment.MeasureConfig{Objectives: objectives}, view, out)
	case sweeps < len(inputs):
		return misused("name either runs or sweeps: the runs of a sweep are the folders in it")
	case objectives != nil || c.IsSet("metrics"):
		return misused("--goodput and --metrics are for runs: name those in the sweep's folder")
	case runsOnly:
		return misused("%s shows runs: name those in the sweep's folder", ofRuns)
	}
	return reportSweeps(c, std, inputs, view, out)
}

// reportEach reports runs one after another.
func reportEach(c *cli.Context, std streams, inputs []namedInput, cfg experiment.MeasureConfig, view report.View, out outputs) error {
	// Nearly all data of a run has no pointers and stays until the end, so frequent
	// collections are cheap and save memory.
	debug.SetGCPercent(25)
	cfg.Change = changeOf(c)
	_, cfg.EachPrediction = out.has(missesForm)
	_, cfg.Detail = out.has(overTimeForm, "html")
	var runs report.Runs
	var versions []string
	several := false
	for _, in := range inputs {
		result, err := experiment.Measure(cfg, in.path)
		if err != nil {
			return err
		}
		std.sayAll("%s", result.Damaged)
		runs = append(runs, report.Run{Name: in.name, Info: result.Run, Result: result.Metrics, View: view})
		versions = append(versions, in.name+" "+result.Run.Version)
		several = several || result.Run.Version != runs[0].Info.Version
	}
	if several {
		std.say("note: runs of different moontide versions: %s", strings.Join(versions, ", "))
	}
	shown := resultsOf(runs)
	shown.forms[aiperfForm] = func(w io.Writer) error { return writeAIPerf(w, inputs) }
	shown.forms[missesForm] = func(w io.Writer) error { return report.Predictions(runs[0].Result.Cache.Prediction).WriteCSV(w) }
	shown.forms[overTimeForm] = func(w io.Writer) error { return report.Series(runs[0].Result.Detail.Series).WriteCSV(w) }
	for form, block := range blockForms {
		shown.forms[form] = func(w io.Writer) error { return runs.Block(block).WriteText(w) }
	}
	if err := out.show(std, shown); err != nil {
		return err
	}
	return outcomeOf(runs)
}

// blockForms holds the forms that are a result block.
var blockForms = map[string]report.Block{vllmForm: report.VLLM, dynamoForm: report.Dynamo, morehForm: report.Moreh}

func metricNames() (names []string) {
	for _, l := range measure.Latencies {
		names = append(names, l.String())
	}
	return names
}

func writeAIPerf(w io.Writer, inputs []namedInput) error {
	for _, in := range inputs {
		recording, err := experiment.OpenRecording(in.path)
		if err != nil {
			return err
		}
		err = report.AIPerf(w, recording.Run, recording.Records)
		recording.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", in.name, err)
		}
	}
	return nil
}

// reportSweeps shows sweeps side by side, each as one or more deployments.
func reportSweeps(c *cli.Context, std streams, inputs []namedInput, view report.View, out outputs) error {
	var legs []experiment.LegResult
	var incomplete []string
	for _, sweep := range inputs {
		measured, unended, err := experiment.MeasureSweep(experiment.MeasureConfig{Change: changeOf(c)}, sweep.path)
		if err != nil {
			return err
		}
		for _, dir := range unended {
			what := "the run in " + dir + " did not end, or no request succeeded"
			if dir == sweep.path {
				what = "the sweep in " + dir + " did not end"
			}
			incomplete = append(incomplete, what+": repeat its command")
		}
		for _, leg := range measured {
			if len(inputs) > 1 {
				leg.Target.Label = strings.TrimSpace(sweep.name + " " + leg.Target.Label)
			}
			if len(legs) > 0 && leg.Axis != legs[0].Axis {
				return fmt.Errorf("%s varies the %s, and %s the %s: only sweeps over the same quantity can be compared",
					inputs[0].name, legs[0].Axis, sweep.name, leg.Axis)
			}
			std.sayAll("%s", leg.Damaged)
			legs = append(legs, leg)
		}
	}
	set := report.SweepOf(subjectOf(legs), legs, view)
	set.Incomplete = incomplete
	if err := out.show(std, resultsOf(set)); err != nil {
		return err
	}
	if len(incomplete) > 0 {
		return errors.New(strings.Join(incomplete, "\n"))
	}
	return setOutcome(set)
}

// subjectOf names the trace and the model of the runs of sweeps, if they agree.
func subjectOf(legs []experiment.LegResult) string {
	model, trace := legs[0].Run.Target.ModelText(), filepath.Base(legs[0].Run.Trace.Name)
	for _, leg := range legs {
		if leg.Run.Target.ModelText() != model {
			model = "several models"
		}
		if filepath.Base(leg.Run.Trace.Name) != trace {
			trace = ""
		}
	}
	if legs[0].Run.Target.Virtual {
		model = "simulated in virtual time"
	} else {
		model = "model " + model
	}
	if trace == "" {
		return model
	}
	return trace + ", " + model
}

// changeOf returns the changes that the flags make to a run.
func changeOf(c *cli.Context) func(info *runfile.Run) {
	return func(info *runfile.Run) {
		info.Window, info.Thresholds = windowOf(c, info.Window), thresholdsOf(c, info.Thresholds)
		if n := c.Int(serverBlockSizeFlag.Name); n > 0 {
			info.Target.ServerBlockSize = n
		}
	}
}
