package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/diff"
	"moontide/analyze/report"
	"moontide/analyze/run"
	"moontide/replay/runfile"
)

func compareCommand(std streams) *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "say how two runs differ, how sure that is, and where it comes from",
		ArgsUsage: "A B",
		Description: "A and B are runs' folders, or several of one test each: A1,A2,A3 B1,B2,B3. A name can be put\n" +
			"before them: old=A new=B. Three runs a side or more tell what one cannot. Runs that are INVALID,\n" +
			"that did not go to their end or that did not replay the same are not compared without --force:\n" +
			"the exit status is then 3 for an INVALID one and else 1.\n\n" +
			"A condition of --fail-if is a metric of a run's summary, < or >, and a limit. With a sign the limit is\n" +
			"a change from A to B, with % relative to A: 'p99_ttft_ms>+5%', 'output_throughput<-200'. Without it is\n" +
			"a value of B: 'mean_itl_ms>25'. A change that is not significant counts as none; one of which no\n" +
			"interval can be told counts as it is. What was not measured fails.",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "fail-if", Usage: "end with exit status 1 where `CONDITION` is met; may be given often"},
			&cli.StringSliceFlag{Name: "metric", Usage: "compare `METRIC`, too, such as p90_ttft_from_schedule_ms; may be given often"},
			&cli.StringFlag{Name: "goodput", Usage: "compare the requests a second that keep to `OBJECTIVES`, such as ttft:2000,tpot:25, too: the metric goodput"},
			&cli.BoolFlag{Name: "force", Usage: "compare what speaks against being compared"},
			&cli.Uint64Flag{Name: "seed", Usage: "of the resamples"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON instead of text"},
			&cli.BoolFlag{Name: "markdown", Usage: "print Markdown instead of text"},
			&cli.BoolFlag{Name: "csv", Usage: "print the table of differences as CSV instead of text"},
		},
		Action: func(c *cli.Context) error { return compareRuns(c, std) },
	}
}

func compareRuns(c *cli.Context, std streams) error {
	asked, err := parseCompare(c)
	if err != nil {
		return err
	}
	var sides [2][]*diff.Run
	for i, side := range asked.sides {
		for _, dir := range side.dirs {
			info, err := readRun(std, dir, asked)
			if err != nil {
				return err
			}
			sides[i] = append(sides[i], info)
		}
	}
	found := diff.Of(sides[0], sides[1], diff.Options{Metrics: asked.metrics, Seed: c.Uint64("seed")})
	if len(found.Objections) > 0 && !c.Bool("force") {
		return refuse(std, found.Objections)
	}
	shown := report.RunsComparison{Comparison: found, NameA: asked.sides[0].name, NameB: asked.sides[1].name}
	var failed []error
	for _, gate := range asked.gates {
		difference, _ := found.Find(gate.Metric.Name)
		j := gate.Judge(difference)
		if shown.Judgements = append(shown.Judgements, j); j.Failed {
			failed = append(failed, fmt.Errorf("failed: %s: %s", gate.Text, j.Reason))
		}
	}
	show := shown.Text
	switch {
	case c.Bool("json"):
		show = shown.JSON
	case c.Bool("markdown"):
		show = shown.Markdown
	case c.Bool("csv"):
		show = shown.CSV
	}
	if err := show(std.out); err != nil {
		return err
	}
	return errors.Join(failed...)
}

// comparison is what is to be compared.
type comparison struct {
	sides      [2]comparedSide
	gates      []diff.Gate
	metrics    []diff.Metric
	objectives []run.Objective
}

type comparedSide struct {
	name string
	dirs []string
}

// parseCompare reads the command line. What a condition is about is compared,
// too.
func parseCompare(c *cli.Context) (asked comparison, err error) {
	if c.NArg() != 2 {
		return asked, misused("compare: name two sides, A and B, each a run's folder or several with commas between them; not %d", c.NArg())
	}
	for i, arg := range c.Args().Slice() {
		if asked.sides[i], err = parseSide(arg); err != nil {
			return asked, err
		}
	}
	printed := ""
	for _, form := range []string{"json", "markdown", "csv"} {
		if c.Bool(form) && printed != "" {
			return asked, misused("compare: --%s and --%s: print one or the other", printed, form)
		} else if c.Bool(form) {
			printed = form
		}
	}
	asked.metrics = diff.Metrics()
	have := map[string]bool{}
	for _, m := range asked.metrics {
		have[m.Name] = true
	}
	add := func(m diff.Metric) {
		if !have[m.Name] {
			have[m.Name] = true
			asked.metrics = append(asked.metrics, m)
		}
	}
	if c.IsSet(goodputMetric) {
		if asked.objectives, err = run.ParseObjectives(c.String(goodputMetric)); err != nil {
			return asked, misused("compare: --goodput: %w", err)
		}
		m, err := diff.ParseMetric(goodputMetric)
		if err != nil {
			return asked, err
		}
		add(m)
	}
	for _, name := range c.StringSlice("metric") {
		m, err := diff.ParseMetric(name)
		if err != nil {
			return asked, misused("compare: --metric: %w", err)
		}
		add(m)
	}
	for _, text := range c.StringSlice("fail-if") {
		gate, err := diff.ParseGate(text)
		if err != nil {
			return asked, misused("compare: --fail-if: %w", err)
		}
		asked.gates = append(asked.gates, gate)
		add(gate.Metric)
	}
	if have[goodputMetric] && asked.objectives == nil {
		return asked, misused("compare: goodput needs objectives: want --goodput, such as ttft:2000,tpot:25")
	}
	return asked, nil
}

// goodputMetric is the flag and the metric.
const goodputMetric = "goodput"

// parseSide reads [NAME=]DIR[,DIR...]. A folder that is called so is one.
func parseSide(arg string) (comparedSide, error) {
	if _, err := os.Stat(arg); err == nil {
		return comparedSide{arg, []string{arg}}, nil
	}
	name, list, named := strings.Cut(arg, "=")
	if !named {
		list = arg
	}
	side := comparedSide{name, strings.Split(list, ",")}
	for i, dir := range side.dirs {
		if dir == "" {
			return side, misused("compare: %q names no folder between its commas", arg)
		}
		// A run has nothing to say of how runs differ from each other by being there twice.
		if slices.ContainsFunc(side.dirs[:i], func(other string) bool { return filepath.Clean(other) == filepath.Clean(dir) }) {
			return side, misused("compare: %q names %s twice", arg, dir)
		}
	}
	if !named {
		side.name = strings.Join(side.dirs, ", ")
	}
	return side, nil
}

// readRun takes in the run in a folder.
func readRun(std streams, dir string, asked comparison) (*diff.Run, error) {
	recorded, opts, err := openRun(dir, func(*runfile.Run) {})
	if err != nil {
		return nil, err
	}
	defer recorded.Close()
	opts.Objectives = asked.objectives
	info, err := diff.Read(diff.Source{Name: dir, Run: recorded.Run, Records: recorded.Records(), Measure: opts}, asked.metrics)
	reportDamaged(std, dir, recorded)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return info, nil
}

// refuse says why the sides are not compared.
func refuse(std streams, objections []diff.Objection) error {
	invalid := false
	reasons := ""
	for _, o := range objections {
		reasons += "\n  " + o.Reason
		invalid = invalid || o.Invalid
	}
	err := fmt.Errorf("not comparable (--force compares all the same):%s", reasons)
	if !invalid {
		return err
	}
	fmt.Fprintf(std.err, "moontide: %s\n", harmless(err.Error()))
	return errInvalid
}
