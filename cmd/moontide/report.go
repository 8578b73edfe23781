package main

import (
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
	asked, err := parseReport(c)
	if err != nil {
		return err
	}
	if sweeps, err := asked.ofSweeps(c); err != nil {
		return err
	} else if sweeps {
		return reportSweeps(c, std, &asked)
	}
	// Nearly all data of a run has no pointers and stays until the end, so frequent
	// collections are cheap and save memory.
	debug.SetGCPercent(25)
	var runs report.Runs
	_, misses := asked.has(missesForm)
	_, detail := asked.has(overTimeForm, "html")
	for _, r := range asked.runs {
		result, err := experiment.Measure(experiment.MeasureConfig{
			Change:         changeOf(c),
			Objectives:     asked.objectives,
			EachPrediction: misses,
			Detail:         detail,
		}, r.path)
		if err != nil {
			return err
		}
		sayDamaged(std, result.Damaged)
		runs = append(runs, report.Run{Name: r.name, Info: result.Run, Result: result.Metrics, View: asked.view})
	}
	noteVersions(std, runs)
	if err := asked.show(std, runs); err != nil {
		return err
	}
	return outcomeOf(runs)
}

// noteVersions warns if runs are of different versions.
func noteVersions(std streams, runs report.Runs) {
	var versions []string
	different := false
	for _, r := range runs {
		versions = append(versions, r.Name+" "+r.Info.Version)
		different = different || r.Info.Version != runs[0].Info.Version
	}
	if different {
		std.say("note: runs of different moontide versions: %s", strings.Join(versions, ", "))
	}
}

// reportQuestion holds the parsed command line.
type reportQuestion struct {
	runs       []namedInput
	view       report.View
	objectives []measure.Objective
	outputs
}

func parseReport(c *cli.Context) (q reportQuestion, err error) {
	if c.NArg() == 0 {
		return q, misused("name a run's folder, or several")
	}
	q.runs = namedInputs(slices.DeleteFunc(c.Args().Slice(), func(arg string) bool {
		return c.NArg() > 1 && filepath.Base(arg) == experiment.SweepFile // a shell's sweep/*
	}))
	if q.view, q.objectives, err = parseView(c); err != nil {
		return q, err
	}
	if q.view.Gates, err = gatesOf(c, q.objectives); err != nil {
		return q, err
	}
	if q.outputs, err = outputsOf(c); err != nil {
		return q, err
	}
	for form, block := range blockForms {
		if flag, ok := q.has(form); ok {
			if err := block.Check(q.view); err != nil {
				return q, misused("--metrics: %s: %w", flag, err)
			}
		}
	}
	if flag, ok := q.has(missesForm, overTimeForm); ok && len(q.runs) > 1 {
		return q, misused("%s shows one run", flag)
	}
	return q, nil
}

func parseView(c *cli.Context) (v report.View, objectives []measure.Objective, err error) {
	if c.IsSet("metrics") {
		if v.Latencies, err = measure.ParseLatencies(c.String("metrics")); err != nil {
			return v, nil, misused("--metrics: %w", err)
		}
	}
	if v.Percentiles, err = percentilesOf(c); err != nil {
		return v, nil, err
	}
	if c.IsSet("goodput") {
		if objectives, err = measure.ParseObjectives(c.String("goodput")); err != nil {
			return v, nil, misused("--goodput: %w", err)
		}
	}
	return v, objectives, nil
}

// percentilesOf parses --percentiles; it returns nil without it.
func percentilesOf(c *cli.Context) ([]float64, error) {
	if !c.IsSet(percentilesFlag.Name) {
		return nil, nil
	}
	percentiles, err := report.ParsePercentiles(c.String(percentilesFlag.Name))
	if err != nil {
		return nil, misused("--%s: %w", percentilesFlag.Name, err)
	}
	return percentiles, nil
}

// blockForms holds the forms that are a result block.
var blockForms = map[string]report.Block{vllmForm: report.VLLM, dynamoForm: report.Dynamo, morehForm: report.Moreh}

func metricNames() (names []string) {
	for _, l := range measure.Latencies {
		names = append(names, l.String())
	}
	return names
}

func (q *reportQuestion) show(std streams, runs report.Runs) error {
	shown := resultsOf(runs)
	shown.forms[aiperfForm] = func(w io.Writer) error { return q.writeAIPerf(std, w) }
	shown.forms[missesForm] = func(w io.Writer) error { return report.Predictions(runs[0].Result.Cache.Prediction).WriteCSV(w) }
	shown.forms[overTimeForm] = func(w io.Writer) error { return report.Series(runs[0].Result.Detail.Series).WriteCSV(w) }
	for form, block := range blockForms {
		shown.forms[form] = func(w io.Writer) error { return runs.Block(block).WriteText(w) }
	}
	return q.outputs.show(std, shown)
}

func (q *reportQuestion) writeAIPerf(std streams, w io.Writer) error {
	for _, r := range q.runs {
		recording, err := experiment.OpenRecording(r.path)
		if err != nil {
			return err
		}
		err = report.AIPerf(w, recording.Run, recording.Records)
		recording.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}
