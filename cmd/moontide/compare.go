package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/diff"
	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/analyze/slo"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
	"moontide/replay/settings"
)

func compareCommand(std streams, _ stop) *cli.Command {
	d, flags := newCommandLine(nil, func(row *settings.Setting) bool { return row.Group == settings.Gates })
	return &cli.Command{
		Usage: "compare two runs, with confidence intervals",
		Description: "A and B are run folders, or comma-separated folders of repeated runs: A1,A2,A3 B1,B2,B3. Name the sides " +
			"with old=A new=B. Of two sets of bench, the runs with the same settings are compared. Use three or more runs per side to see run-to-run variation. Without --force, compare " +
			"refuses runs that are INVALID (exit status 3), and runs that are incomplete or of different workloads " +
			"(exit status 1). Compare a simulated run with a measured one to see the errors of a prediction.\n\n" +
			gateHelp + "\n\n" +
			"Limits apply to B. A signed limit applies to the change from A to B, with % relative to A: --fail-if " +
			"'p99_ttft>+5%,output_throughput<-200'. A change that is not significant counts as zero; a change without " +
			"a confidence interval counts in full.",
		Flags: append(slices.Concat(flags, outputFlags(oneOf(words("json markdown csv html png")...))),
			repeatable(cli.GenericFlag{Name: "metric", Category: inOutput, Usage: "also compare `METRIC`, such as p90_ttft_from_schedule_ms; repeatable"}),
			&cli.Uint64Flag{Name: "seed", Category: inOutput, Usage: "seed of the bootstrap resamples"},
		),
		Action: func(c *cli.Context) error { return compareRuns(c, std, d) },
	}
}

func compareRuns(c *cli.Context, std streams, d *commandLine) error {
	if c.NArg() != 2 {
		return misused("want two sides, A and B, each one or more comma-separated run folders; got %d", c.NArg())
	}
	view, err := viewOf(c, &d.Settings)
	if err != nil {
		return err
	}
	objectives, err := experiment.GoodputOf(&d.Settings)
	if err != nil {
		return misused("--goodput: %w", err)
	}
	metrics, err := comparedMetrics(c, view.Gates, objectives)
	if err != nil {
		return err
	}
	out, err := outputsOf(c)
	if err != nil {
		return err
	}
	sets := 0
	for _, arg := range c.Args().Slice() {
		if experiment.IsSet(parseInput(arg).path) {
			sets++
		}
	}
	compared := comparison{std, d, metrics, view.Gates, c.Uint64("seed")}
	switch sets {
	case 2:
		return compared.sets(out, c.Args().Slice())
	case 1:
		return misused("name either two sides of runs or two sets: the runs of a set are the folders in it")
	}
	var names [2]string
	var sides [2][]string
	for i, arg := range c.Args().Slice() {
		if names[i], sides[i], err = parseSide(arg); err != nil {
			return err
		}
	}
	shown, err := compared.sides(names, sides)
	if err != nil {
		return err
	}
	if err := out.show(std, resultsOf(shown)); err != nil {
		return err
	}
	return failedGates("", shown.Judgements)
}

// comparison is how runs are compared.
type comparison struct {
	std     streams
	line    *commandLine
	metrics []measure.Metric
	gates   []slo.Gate
	seed    uint64
}

// sides compares the runs in some folders with those in others.
func (c *comparison) sides(names [2]string, dirs [2][]string) (shown report.Difference, err error) {
	var sides [2][]*diff.Run
	for i := range dirs {
		for _, dir := range dirs[i] {
			run, err := readRun(c.std, dir, c.line.Objectives.Goodput)
			if err != nil {
				return shown, err
			}
			sides[i] = append(sides[i], run)
		}
	}
	found := diff.Of(sides[0], sides[1], diff.Options{Metrics: c.metrics, Seed: c.seed})
	if len(found.Objections) > 0 && !c.line.Objectives.Force {
		return shown, refuse(c.std, found.Objections)
	}
	shown = report.Difference{Comparison: found, NameA: names[0], NameB: names[1]}
	for _, gate := range c.gates {
		difference, _ := found.Find(gate.Metric.Key)
		shown.Judgements = append(shown.Judgements, diff.Judge(gate, difference))
	}
	return shown, nil
}

// sets compares the runs of two sets that have the same settings.
func (c *comparison) sets(out outputs, args []string) error {
	var sets [2]experiment.SetFolder
	shown := report.Differences{}
	for i, arg := range args {
		in := parseInput(arg)
		var err error
		if sets[i], err = experiment.OpenSet(in.path); err != nil {
			return err
		}
		shown.Names[i] = cmp.Or(in.name, in.path)
	}
	for i, set := range sets {
		if len(set.Unended) > 0 && !c.line.Objectives.Force {
			return fmt.Errorf("%s did not end: use --force to compare the runs that it has", shown.Names[i])
		}
	}
	grouped := [2][]pointRuns{runsByPoint(sets[0].Runs), runsByPoint(sets[1].Runs)}
	for _, a := range grouped[0] {
		i := slices.IndexFunc(grouped[1], a.same)
		if i < 0 {
			shown.Alone = append(shown.Alone, fmt.Sprintf("%v of %s", a.point, shown.Names[0]))
			continue
		}
		dirs := [2][]string{a.dirs, grouped[1][i].dirs}
		difference, err := c.sides([2]string{strings.Join(dirs[0], ", "), strings.Join(dirs[1], ", ")}, dirs)
		if err != nil {
			return fmt.Errorf("%v: %w", a.point, err)
		}
		shown.Points = append(shown.Points, report.PointDifference{Point: a.point.String(), Difference: difference})
	}
	for _, b := range grouped[1] {
		if !slices.ContainsFunc(grouped[0], b.same) {
			shown.Alone = append(shown.Alone, fmt.Sprintf("%v of %s", b.point, shown.Names[1]))
		}
	}
	if len(shown.Points) == 0 {
		return fmt.Errorf("no run of %s has the settings of one of %s", shown.Names[0], shown.Names[1])
	}
	if err := out.show(c.std, resultsOf(shown)); err != nil {
		return err
	}
	var failed []error
	for _, p := range shown.Points {
		failed = append(failed, failedGates(p.Point+": ", p.Judgements))
	}
	return errors.Join(failed...)
}

// pointRuns are the folders of the runs of a set at one point.
type pointRuns struct {
	point experiment.Point
	dirs  []string
}

func (p pointRuns) same(o pointRuns) bool { return p.point.Same(o.point) }

// runsByPoint groups repeated runs.
func runsByPoint(runs []experiment.SetRun) (all []pointRuns) {
	for _, r := range runs {
		at := pointRuns{point: r.Point}
		at.point.Repeat = 0
		i := slices.IndexFunc(all, at.same)
		if i < 0 {
			i = len(all)
			all = append(all, at)
		}
		all[i].dirs = append(all[i].dirs, r.Dir)
	}
	return all
}

// comparedMetrics returns the metrics to compare: those of --metric, of conditions and of
// goodput, too.
func comparedMetrics(c *cli.Context, gates []slo.Gate, objectives []measure.Objective) ([]measure.Metric, error) {
	all := measure.MetricsToCompare(measure.CompareAlways)
	add := func(m measure.Metric) {
		if !slices.ContainsFunc(all, func(other measure.Metric) bool { return other.Key == m.Key }) {
			all = append(all, m)
		}
	}
	if objectives != nil {
		add(measure.MustMetric("request_goodput"))
	}
	for _, name := range textsOf(c, "metric") {
		m, err := measure.ParseMetric(name)
		switch {
		case err != nil:
			return nil, misused("--metric: %w", err)
		case m.Goodput && objectives == nil:
			return nil, errNoObjectives
		}
		add(m)
	}
	for _, gate := range gates {
		add(gate.Metric)
	}
	return all, nil
}

// parseSide parses [NAME=]DIR[,DIR...]. If a folder of that name exists, it is
// a DIR.
func parseSide(arg string) (name string, dirs []string, err error) {
	if _, err := os.Stat(arg); err == nil {
		return arg, []string{arg}, nil
	}
	in := parseInput(arg)
	dirs = strings.Split(in.path, ",")
	for i, dir := range dirs {
		if dir == "" {
			return "", nil, misused("%q names no folder between its commas", arg)
		}
		if slices.ContainsFunc(dirs[:i], func(other string) bool { return filepath.Clean(other) == filepath.Clean(dir) }) {
			return "", nil, misused("%q names %s twice", arg, dir)
		}
	}
	return cmp.Or(in.name, strings.Join(dirs, ", ")), dirs, nil
}

func readRun(std streams, dir string, goodput string) (*diff.Run, error) {
	recording, err := experiment.OpenRecording(dir)
	if err != nil {
		return nil, err
	}
	defer recording.Close()
	opts, err := recording.Options(experiment.MeasureConfig{Change: func(info *runfile.Run) {
		info.Settings.Objectives.Goodput = goodput
	}})
	if err != nil {
		return nil, err
	}
	run, err := diff.Read(diff.Source{Name: dir, Run: recording.Run, Records: recording.Records, Measure: opts})
	std.sayAll("%s", recording.Damaged())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return run, nil
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
