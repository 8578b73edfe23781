package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/analyze/slo"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
	"moontide/replay/secret"
	"moontide/replay/settings"
)

// Flags of bench only.
const (
	shapeFlag       = "shape"
	findSettingFlag = "find"
	repeatFlag      = "repeat"
	virtualFlag     = "virtual"
	minRequestsFlag = "min-requests"
	maxRunsFlag     = "max-runs"

	mostTokens = 100_000_000 // of a shape
)

func benchCommand(std streams, stop stop) *cli.Command {
	d, flags := newCommandLine(axes, func(row *settings.Setting) bool {
		few := slices.Contains(words("engine engines prefill-engines decode-engines routing"), row.Name)
		return !row.File && !slices.Contains(words("part rendezvous metrics-listen closed session-rate ramp skip-bad-rows"), row.Name) && (row.Group != settings.Engine || few)
	})
	return &cli.Command{
		Usage: "measure an endpoint at several values of settings: loads, shapes, URLs, engines",
		Description: "Every setting with a list, such as --max-concurrency 1,2,4 or --rate 1,2,4, makes a run for each value, and " +
			"several lists one for each combination. Each run replays TRACE or, without one, requests of a description, and has " +
			"its own folder in --out. Prompts differ from run to run, so that no run finds a warm cache; repeat a set with " +
			"another --salt. The same command with the same --out executes the runs that are missing or INVALID.\n\n" +
			"Without --rate and --speedup, the runs are closed loops of --max-concurrency. Give several URLs as label=URL to get " +
			"a table for each, and the ratios to the first. Without --url a simulated endpoint runs in this process, with " +
			"--virtual in virtual time.\n\n" +
			"--find SETTING searches for its highest value that meets --slo: it brackets the load, bisects in steps of 5 %, and " +
			"runs both sides of the answer three times. If an INVALID run limits the answer, the exit status is 3; if no load " +
			"meets the conditions, 4.\n\n" +
			"A DIST is a number of tokens or a distribution, such as lognormal:1000:1.5. Everything else that can be set is a " +
			"setting of --config FILE or --set NAME=VALUE.\n\n" +
			gateHelp,
		Flags: append(slices.Concat(flags, fileFlags(), runOutputFlags()),
			&cli.StringFlag{Name: shapeFlag, Category: ofDescriptions, Usage: "`ISL:OSL,..`: run all loads for each of several shapes; replaces --isl and --osl"},
			&cli.StringFlag{Name: findSettingFlag, Category: inGates, Usage: "search for the highest `SETTING` that meets --slo: rate, speedup or max-concurrency; its two values, such as --rate 1,50, set the search range"},
			&cli.IntFlag{Name: repeatFlag, Category: inLoad, Value: 1, Usage: "number of runs at each point"},
			&cli.BoolFlag{Name: virtualFlag, Category: inLoad, Usage: "simulate the runs in virtual time; takes no --url"},
			&cli.IntFlag{Name: maxRunsFlag, Category: inGates, Usage: "maximum number of runs of --find", DefaultText: "20"},
			&cli.IntFlag{Name: minRequestsFlag, Category: inGates, Usage: "minimum number of requests per run of --find", DefaultText: "as many as the percentiles of --slo need, at least 100; 10 times that with --virtual"},
		),
		Action: func(c *cli.Context) error { return runBench(c, std, stop, d) },
	}
}

// runBench executes the runs of a set and shows the results, even if the set was not
// completed.
func runBench(c *cli.Context, std streams, stop stop, d *commandLine) error {
	if err := d.complete(c); err != nil {
		return err
	}
	if c.Bool(virtualFlag) {
		d.Virtual = true
		d.Mark("virtual", "--"+virtualFlag)
	}
	s := experiment.Set{Repeat: c.Int(repeatFlag)}
	remove, err := setTrace(c, std, d, &s.Base)
	if err != nil {
		if c.NArg() == 0 && !c.IsSet(shapeFlag) {
			return misused("describe the requests with --isl and --osl, or with --spec, or name a TRACE")
		}
		if c.NArg() > 0 {
			return err
		}
		remove = func() {}
	}
	defer remove()
	if err := d.plan(c, &s); err != nil {
		return err
	}
	view, err := viewOf(c, &d.Settings)
	if err != nil {
		return err
	}
	out, err := outputsOf(c)
	if err != nil {
		return err
	}
	if s.Goal != nil {
		s.Goal.Gates = view.Gates
		if err := checkGoal(s.Goal); err != nil {
			return err
		}
	}
	dir := d.Output.Dir
	d.Output.Dir = ""
	if dir == "" {
		dir = experiment.NewFolder("runs", "bench")
	}
	if err := configure(c, std, stop, d, &s.Base); err != nil {
		return err
	}
	s.Dir = dir
	s.Save = func(result *experiment.Result) error {
		std.sayAll("%s", result.Damaged)
		return saveReports(std, result, view)
	}
	s.Each = func(t experiment.Trial) { sayTrial(std, t) }
	if d.Described() {
		if err := sayRounding(std, &s); err != nil {
			return d.misuse(err)
		}
	}
	var set report.Set
	var trials []experiment.Trial
	if s.Goal != nil {
		answers, errRun := s.Search(stop.now)
		if err = d.ended(errRun); len(answers) == 0 {
			return err
		}
		trials = answers[0].Trials
		set = report.SearchOf(subjectOf(trials), answers, view)
	} else {
		if trials, err = s.Run(stop.now); err != nil {
			err = d.ended(err)
		}
		if trials == nil {
			return err
		}
	}
	std.say("the runs are in %s", dir)
	if err != nil && statusOf(err) != exitMisused {
		err = fmt.Errorf("%w; to continue, repeat the command with --out %s", err, dir)
	}
	if len(trials) == 0 {
		return err
	}
	if s.Goal == nil {
		set = report.SweepOf(subjectOf(trials), trials, view)
	}
	set.HeldOut = heldOutErrors(d.file, set.Metrics)
	if err != nil {
		set.Incomplete = append(set.Incomplete, "the set in "+dir+" did not end: repeat its command")
	}
	if err := errors.Join(err, showSet(std, out, set)); err != nil {
		return err
	}
	return setOutcome(set)
}

// plan sets the points of the set, or its goal: shapes first, then loads, then the rest.
func (d *commandLine) plan(c *cli.Context, s *experiment.Set) error {
	shapes, err := d.shapes(c)
	if err != nil {
		return err
	}
	goal := strings.ReplaceAll(c.String(findSettingFlag), "_", "-")
	if goal == "concurrency" {
		goal = "max-concurrency"
	}
	switch name := firstGivenOf(c, minRequestsFlag, maxRunsFlag); {
	case goal == "" && name != "":
		return misused("--%s needs --find", name)
	case goal != "" && !slices.Contains(runfile.Loads, goal):
		return misused("--find %q is no load: use rate, speedup or max-concurrency", goal)
	case goal == "speedup" && d.Trace.Path == "":
		return misused("--find speedup needs a TRACE: use --find rate")
	}
	load := d.load(goal)
	switch {
	case c.Int(repeatFlag) < 1:
		return misused("--repeat must be at least 1: %d", c.Int(repeatFlag))
	case goal != "" && c.Int(repeatFlag) > 1:
		return misused("--repeat and --find: a search repeats the runs at its answer by itself")
	case goal != "" && load.Values == nil && d.IsSet(goal):
		return misused("with --find %s, --%[1]s has the lowest and the highest level to try, such as 1,50: %s", goal, settings.Find(goal).Text(&d.Settings))
	}
	if load.Setting == "" {
		return misused("want --max-concurrency or --rate, with a value or several")
	}
	var loads, others, engines []experiment.Axis
	if goal == "" {
		loads = append(loads, load)
	} else {
		s.Goal = &experiment.Goal{Setting: goal, MinRequests: c.Int(minRequestsFlag), MaxRuns: c.Int(maxRunsFlag)}
		if s.Goal.Low, s.Goal.High, err = bounds(load); err != nil {
			return err
		}
	}
	for _, axis := range d.axes {
		switch {
		case axis.Setting == load.Setting:
		case settings.Find(axis.Setting).Group == settings.Engine:
			engines = append(engines, axis)
		default:
			others = append(others, axis)
		}
	}
	urls, err := d.urls()
	if err != nil {
		return misused("--url %w", err)
	}
	s.Points = experiment.Combine(shapes, slices.Concat(loads, others, urls)...)
	if d.axes = engines; len(engines) > 0 {
		if len(d.Client.URLs) > 0 {
			return misused("--%s is for simulated engines, which --url replaces", engines[0].Setting)
		}
		deployments, err := d.deployments()
		if err != nil {
			return err
		}
		var points []experiment.Point
		for _, p := range s.Points {
			for _, deployment := range deployments {
				points = append(points, experiment.Point{Values: slices.Concat(p.Values, deployment.Values)})
			}
		}
		s.Points = points
		d.Settings.Unset(engineCounts...)
	}
	d.Settings.Unset(load.Setting)
	return nil
}

// shapes returns a point for each of --shape.
func (d *commandLine) shapes(c *cli.Context) (points []experiment.Point, err error) {
	if !c.IsSet(shapeFlag) {
		return []experiment.Point{{}}, nil
	}
	switch name := d.FirstSet("isl", "unique-isl", "osl", "spec"); {
	case name != "":
		return nil, misused("--shape and --%s: choose one", name)
	case d.Trace.Path != "":
		return nil, misused("--shape describes requests, and a TRACE has its own")
	}
	for part := range strings.SplitSeq(c.String(shapeFlag), ",") {
		isl, osl, _ := strings.Cut(strings.TrimSpace(part), ":")
		for _, text := range []string{isl, osl} {
			if n, err := strconv.Atoi(text); err != nil || n < 1 || n > mostTokens {
				return nil, misused("--shape: %q is not ISL:OSL, two whole numbers from 1 to %d, such as 3000:150", part, mostTokens)
			}
		}
		p := experiment.Point{}.With(runfile.Value{Setting: "isl", Text: isl}).With(runfile.Value{Setting: "osl", Text: osl})
		if slices.ContainsFunc(points, p.Same) {
			return nil, misused("--shape has %s:%s twice", isl, osl)
		}
		points = append(points, p)
	}
	for _, v := range points[0].Values { // for checks
		if err := d.Settings.Set(v.Setting, v.Text, "--"+shapeFlag); err != nil {
			return nil, err
		}
	}
	return points, nil
}

// load returns the axis of the load: that of the goal, a list, or a single value. Without
// any, a trace runs at its own speed.
func (d *commandLine) load(goal string) experiment.Axis {
	for _, setting := range runfile.Loads {
		i := slices.IndexFunc(d.axes, func(a experiment.Axis) bool { return a.Setting == setting })
		if i >= 0 && (goal == "" || goal == setting) {
			return d.axes[i]
		}
	}
	if goal != "" {
		return experiment.Axis{Setting: goal}
	}
	if setting := d.FirstSet(runfile.Loads...); setting != "" {
		return experiment.Axis{Setting: setting, Values: []string{settings.Find(setting).Text(&d.Settings)}}
	}
	if d.Trace.Path != "" {
		return experiment.Axis{Setting: "speedup", Values: []string{"1"}}
	}
	return experiment.Axis{}
}

// bounds returns the lowest and the highest level of a search, 0 for none.
func bounds(load experiment.Axis) (low, high float64, err error) {
	if load.Values == nil {
		return 0, 0, nil
	}
	if len(load.Values) == 2 {
		low, _ = strconv.ParseFloat(load.Values[0], 64)
		high, _ = strconv.ParseFloat(load.Values[1], 64)
	}
	if !(low < high) {
		return 0, 0, misused("with --find %s, --%[1]s has the lowest and the highest level to try, such as 1,50: %s", load.Setting, strings.Join(load.Values, ","))
	}
	return low, high, nil
}

// urls returns an axis of the URLs, each a URL or label=URL, none for a single one. Labels
// become part of file names.
func (d *commandLine) urls() ([]experiment.Axis, error) {
	axis := experiment.Axis{Setting: "url"}
	for _, text := range d.Client.URLs {
		label, url, labelled := strings.Cut(text, "=")
		if !labelled || strings.Contains(label, "://") { // an = in a query follows the :// of the URL
			label, url = "", text
		} else if !goodLabel.MatchString(label) {
			return nil, fmt.Errorf("%.60q is not a label of 1 to 40 letters, digits and -._", label)
		}
		switch {
		case url == "":
			return nil, fmt.Errorf("%.60q has no URL", text)
		case len(d.Client.URLs) > 1 && label == "":
			return nil, fmt.Errorf("of several needs a label: label=%s", secret.URL(text))
		case slices.ContainsFunc(axis.Labels, func(other string) bool { return strings.EqualFold(other, label) }):
			return nil, fmt.Errorf("has the label %s twice", label)
		}
		axis.Values, axis.Labels = append(axis.Values, url), append(axis.Labels, label)
	}
	if len(axis.Values) == 0 {
		return nil, nil
	}
	d.Client.URLs = axis.Values[:1]
	if axis.Labels[0] == "" {
		return nil, nil
	}
	return []experiment.Axis{axis}, nil
}

var goodLabel = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

// checkGoal checks the objectives of a search for the largest load.
func checkGoal(g *experiment.Goal) error {
	if len(g.Gates) == 0 {
		return misused("--find %s needs objectives: --slo CONDITIONS, such as --slo 'p99_ttft<2s,p99_tpot<50ms'", g.Setting)
	}
	for _, gate := range g.Gates {
		if below := gate.Op == slo.Less || gate.Op == slo.AtMost; below == gate.Forbidden &&
			(gate.Metric.Unit == measure.RequestsPerSecond || gate.Metric.Unit == measure.TokensPerSecond) {
			return misused("--find %s looks for the largest load, and %s holds from a load on: omit it", g.Setting, gate.Condition)
		}
	}
	return nil
}

// sayRounding says if shared prefixes of a description are not whole blocks.
func sayRounding(std streams, s *experiment.Set) error {
	cfg, err := s.At(s.Points[0])
	if err != nil {
		return err
	}
	described, err := cfg.Describe()
	if err != nil {
		return err
	}
	for _, note := range roundedSharing(described) {
		std.say("%s", note)
	}
	return nil
}

func sayTrial(std streams, t experiment.Trial) {
	if t.Metrics.Completed+t.Metrics.Failed == 0 {
		return
	}
	std.say("%s", report.RunLine(t.Metrics))
	if t.Metrics.Cache.Prediction.Causes[measure.Warm].Requests > 0 {
		std.say("the server's cache has prompts of an earlier run; use another --salt and --out")
	}
}

// showSet prints the runs in a form. It also prints a single run as replay does.
func showSet(std streams, out outputs, set report.Set) error {
	shown := resultsOf(set)
	if runs := set.Runs(); len(runs) == 1 && !out.prints() {
		if err := std.printText(runs.Document()); err != nil {
			return err
		}
		fmt.Fprintln(std.out)
	}
	return out.show(std, shown)
}

// setOutcome returns an error if runs are INVALID, or do not meet the gates.
func setOutcome(set report.Set) error {
	if set.Invalid() {
		return errInvalid
	}
	var failed []error
	for _, text := range set.FailedGates() {
		failed = append(failed, gateError{fmt.Errorf("failed: %s", text)})
	}
	return errors.Join(failed...)
}

// subjectOf names the trace or the description, and the model, of the runs of sets, as far as
// they agree.
func subjectOf(trials []experiment.Trial) string {
	first := &trials[0].Run
	model, trace := first.ModelText(), filepath.Base(first.Trace.Name)
	for i := range trials {
		if trials[i].Run.ModelText() != model {
			model = "several models"
		}
		if filepath.Base(trials[i].Run.Trace.Name) != trace {
			trace = ""
		}
	}
	var texts []string
	if first.Settings.Described() {
		trace = ""
		for i := range settings.Table {
			if row := &settings.Table[i]; (row.Group == settings.Descriptions || slices.Contains(words("arrival burstiness"), row.Name)) && first.Settings.IsSet(row.Name) && trials[0].Get(row.Name) == "" {
				label := row.Name
				if label == "isl" || label == "osl" {
					label = strings.ToUpper(label)
				}
				texts = append(texts, label+" "+row.Text(&first.Settings))
			}
		}
	}
	if trace != "" {
		texts = append(texts, trace)
	}
	switch {
	case first.Settings.Virtual:
		model = "simulated in virtual time"
	case first.Target.Simulated:
		model = "model " + model + " on the embedded simulated endpoint"
	default:
		model = "model " + model
	}
	return strings.Join(append(texts, model), ", ")
}
