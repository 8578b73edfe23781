package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/diff"
	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/replay/experiment"
)

func compareCommand(std streams, _ stop) *cli.Command {
	return &cli.Command{
		Usage: "compare two runs, with confidence intervals",
		Description: "A and B are run folders, or comma-separated folders of repeated runs: A1,A2,A3 B1,B2,B3. Name the sides " +
			"with old=A new=B. Use three or more runs per side to see run-to-run variation. Without --force, compare " +
			"refuses runs that are INVALID (exit status 3), and runs that are incomplete or of different workloads " +
			"(exit status 1). Compare a simulated run with a measured one to see the errors of a prediction.\n\n" +
			gateHelp + "\n\n" +
			"Limits apply to B. A signed limit applies to the change from A to B, with % relative to A: --fail-if " +
			"'p99_ttft>+5%,output_throughput<-200'. A change that is not significant counts as zero; a change without " +
			"a confidence interval counts in full.",
		Flags: append(slices.Concat(gateFlags("compare anyway; "), outputFlags(oneOf(words("json markdown csv html png")...))),
			repeatable(cli.GenericFlag{Name: "metric", Category: inOutput, Usage: "also compare `METRIC`, such as p90_ttft_from_schedule_ms; repeatable"}),
			&cli.StringFlag{Name: "goodput", Category: inOutput, Usage: "also compare goodput, the requests per second that meet `OBJECTIVES`, such as ttft:2000,tpot:25"},
			&cli.Uint64Flag{Name: "seed", Category: inOutput, Usage: "seed of the bootstrap resamples"},
		),
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
	shown := report.Diff{Comparison: found, NameA: asked.sides[0].name, NameB: asked.sides[1].name}
	for _, gate := range asked.gates {
		difference, _ := found.Find(gate.Metric.Key)
		shown.Judgements = append(shown.Judgements, diff.Judge(gate, difference))
	}
	if err := asked.show(std, resultsOf(shown)); err != nil {
		return err
	}
	return failedGates("", shown.Judgements)
}

// comparison holds the parsed command line.
type comparison struct {
	sides [2]comparedSide
	outputs
	gates      []measure.Gate
	metrics    []measure.Metric
	objectives []measure.Objective
}

type comparedSide struct {
	name string
	dirs []string
}

// parseCompare parses the command line. The metrics of conditions are compared
// too.
func parseCompare(c *cli.Context) (asked comparison, err error) {
	if c.NArg() != 2 {
		return asked, misused("want two sides, A and B, each one or more comma-separated run folders; got %d", c.NArg())
	}
	for i, arg := range c.Args().Slice() {
		if asked.sides[i], err = parseSide(arg); err != nil {
			return asked, err
		}
	}
	if asked.outputs, err = outputsOf(c); err != nil {
		return asked, err
	}
	asked.metrics = diff.DefaultMetrics()
	needsObjectives := false
	add := func(m measure.Metric) {
		needsObjectives = needsObjectives || m.Goodput
		if !slices.ContainsFunc(asked.metrics, func(other measure.Metric) bool { return other.Key == m.Key }) {
			asked.metrics = append(asked.metrics, m)
		}
	}
	if c.IsSet("goodput") {
		if asked.objectives, err = measure.ParseObjectives(c.String("goodput")); err != nil {
			return asked, misused("--goodput: %w", err)
		}
		add(measure.MustMetric("request_goodput"))
	}
	for _, name := range textsOf(c, "metric") {
		m, err := measure.ParseMetric(name)
		if err != nil {
			return asked, misused("--metric: %w", err)
		}
		add(m)
	}
	if asked.gates, err = gatesOf(c, asked.objectives); err != nil {
		return asked, err
	}
	for _, gate := range asked.gates {
		add(gate.Metric)
	}
	if needsObjectives && asked.objectives == nil {
		return asked, misused("goodput needs --goodput OBJECTIVES, such as ttft:2000,tpot:25")
	}
	return asked, nil
}

// parseSide parses [NAME=]DIR[,DIR...]. If a folder of that name exists, it is
// a DIR.
func parseSide(arg string) (comparedSide, error) {
	if _, err := os.Stat(arg); err == nil {
		return comparedSide{arg, []string{arg}}, nil
	}
	in := parseInput(arg)
	side := comparedSide{in.name, strings.Split(in.path, ",")}
	for i, dir := range side.dirs {
		if dir == "" {
			return side, misused("%q names no folder between its commas", arg)
		}
		if slices.ContainsFunc(side.dirs[:i], func(other string) bool { return filepath.Clean(other) == filepath.Clean(dir) }) {
			return side, misused("%q names %s twice", arg, dir)
		}
	}
	side.name = cmp.Or(side.name, strings.Join(side.dirs, ", "))
	return side, nil
}

func readRun(std streams, dir string, asked comparison) (*diff.Run, error) {
	recording, err := experiment.OpenRecording(dir)
	if err != nil {
		return nil, err
	}
	defer recording.Close()
	opts, err := recording.Options(experiment.MeasureConfig{Objectives: asked.objectives})
	if err != nil {
		return nil, err
	}
	info, err := diff.Read(diff.Source{Name: dir, Run: recording.Run, Records: recording.Records, Measure: opts}, asked.metrics)
	sayDamaged(std, recording.Damaged())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return info, nil
}

// refuse returns the reasons why the sides cannot be compared.
func refuse(std streams, objections []diff.Objection) error {
	invalid := false
	reasons := ""
	for _, o := range objections {
		reasons += "\n  " + o.Reason
		invalid = invalid || o.Invalid
	}
	err := fmt.Errorf("not comparable (use --force to compare anyway):%s", reasons)
	if !invalid {
		return err
	}
	std.say("%v", err)
	return errInvalid
}
