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
	"moontide/replay/settings"
)

func reportCommand(std streams, _ stop) *cli.Command {
	d, flags := newCommandLine(nil, func(row *settings.Setting) bool {
		return row.Group == settings.Gates || slices.Contains(words("warmup-time cooldown-time verdict percentiles"), row.Name)
	})
	return &cli.Command{
		Usage: "report the metrics of runs or sweeps from their folders, even if a run was killed",
		Description: "Several runs are reported one after another, with tables and figures side by side; LABEL=RUN labels a " +
			"run. Sweeps of moontide bench are shown as one table and figure, with the ratios to the first.\n\n" +
			"Measurement window, limits and objectives default to those of the run. Run folders are not changed. The exit status " +
			"is 3 if a run is INVALID.\n\n" +
			"Metrics: " + strings.Join(metricNames(), ", ") + ". Objectives use the same names, in milliseconds; for itl " +
			"and itl_per_token they limit the longest gap of a request.\n\n" +
			gateHelp,
		Flags: append(slices.Concat(flags, reportOutputFlags()),
			repeatable(cli.GenericFlag{Name: setFlag, Category: inValidity, Usage: "`NAME=VALUE`: set a setting of the measurement that has no flag, such as server-block-size; repeatable"}),
			&choiceFlag{
				StringFlag: cli.StringFlag{Name: "metrics", Category: inOutput, DefaultText: "ttft,tpot,itl,e2el", Usage: "`METRICS`: comma-separated metrics to show"},
				Choices:    choiceSet{Names: metricNames(), List: true, Open: true},
			},
		),
		Action: func(c *cli.Context) error { return reportRuns(c, std, d) },
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

func reportRuns(c *cli.Context, std streams, d *commandLine) error {
	if c.NArg() == 0 {
		return misused("name a run's folder, or several")
	}
	if err := d.complete(c); err != nil {
		return err
	}
	inputs := namedInputs(slices.DeleteFunc(c.Args().Slice(), func(arg string) bool {
		return c.NArg() > 1 && filepath.Base(arg) == experiment.SetFile // a shell's set/*
	}))
	if _, err := viewOf(c, &d.Settings); err != nil {
		return err
	}
	out, err := outputsOf(c)
	if err != nil {
		return err
	}
	ofOne, oneOnly := out.has(missesForm, overTimeForm)
	ofRuns, runsOnly := out.has(vllmForm, dynamoForm, morehForm, aiperfForm, missesForm, overTimeForm)
	sets := 0
	for _, in := range inputs {
		if experiment.IsSet(in.path) {
			sets++
		}
	}
	switch {
	case oneOnly && len(inputs) > 1:
		return misused("%s shows one run", ofOne)
	case sets == 0:
		return reportEach(c, std, d, inputs, out)
	case sets < len(inputs):
		return misused("name either runs or sets: the runs of a set are the folders in it")
	case c.IsSet("metrics"):
		return misused("--metrics is for runs: name those in the set's folder")
	case runsOnly:
		return misused("%s shows runs: name those in the set's folder", ofRuns)
	}
	return reportSets(c, std, d, inputs, out)
}

// reportEach reports runs one after another, each as its settings and those of the command
// line say.
func reportEach(c *cli.Context, std streams, d *commandLine, inputs []namedInput, out outputs) error {
	// Nearly all data of a run has no pointers and stays until the end, so frequent
	// collections are cheap and save memory.
	debug.SetGCPercent(25)
	cfg := experiment.MeasureConfig{Change: d.change()}
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
		view, err := viewOf(c, &result.Run.Settings)
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

// reportSets shows sets side by side, each as one or more groups. A set with a goal has its
// answers.
func reportSets(c *cli.Context, std streams, d *commandLine, inputs []namedInput, out outputs) error {
	var all []experiment.Trial
	var answers []*experiment.Answer
	var incomplete []string
	var view report.View
	for _, dir := range inputs {
		folder, err := experiment.OpenSet(dir.path)
		if err != nil {
			return err
		}
		trials, err := folder.Measure(experiment.MeasureConfig{Change: d.change()})
		if err != nil {
			return err
		}
		for _, unfinished := range folder.Unended {
			what := "the run in " + unfinished + " did not end, or no request succeeded"
			if unfinished == dir.path {
				what = "the set in " + unfinished + " did not end"
			}
			incomplete = append(incomplete, what+": repeat its command")
		}
		s := d.Settings
		s.Adopt(&folder.Settings, "")
		if view, err = viewOf(c, &s); err != nil {
			return err
		}
		for i := range trials {
			t := &trials[i]
			if len(inputs) > 1 {
				t.Values = append([]runfile.Value{{Setting: "set", Label: dir.name}}, t.Values...)
			}
			if load, _ := t.Load(); len(all) > 0 && all[0].Get(load) == "" {
				first, _ := all[0].Load()
				return fmt.Errorf("%s varies %s, and %s varies %s: only sets over the same load can be compared", inputs[0].name, first, dir.name, load)
			}
			std.sayAll("%s", t.Damaged)
			all = append(all, *t)
		}
		if g := folder.Goal; g != nil && len(view.Gates) > 0 {
			set := experiment.Set{Base: experiment.Config{Settings: folder.Settings}, Goal: &experiment.Goal{Setting: g.Setting, Low: g.Low, High: g.High, MaxRuns: g.MaxRuns, Gates: view.Gates}}
			found, err := set.Answers(trials)
			if err != nil {
				return d.misuse(err)
			}
			answers = append(answers, found...)
		}
	}
	var set report.Set
	if answers != nil {
		set = report.SearchOf(subjectOf(all), answers, view)
	} else {
		set = report.SweepOf(subjectOf(all), all, view)
	}
	set.Incomplete = incomplete
	if err := out.show(std, resultsOf(set)); err != nil {
		return err
	}
	if len(incomplete) > 0 {
		return errors.New(strings.Join(incomplete, "\n"))
	}
	return setOutcome(set)
}

// change returns the changes that the settings of the command line make to a run.
func (d *commandLine) change() func(info *runfile.Run) {
	return func(info *runfile.Run) {
		s := d.Settings
		s.Adopt(&info.Settings, "")
		info.Settings = s
		if s.ServerBlockSize > 0 {
			info.Target.ServerBlockSize = s.ServerBlockSize
		}
	}
}
