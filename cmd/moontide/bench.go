package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/replay/bench"
	"moontide/synth/spec"
	"moontide/trace/atomicfile"
)

// Flags of bench only.
const (
	concurrencyFlag = "concurrency"
	rateFlag        = "rate"
	numPromptsFlag  = "num-prompts"
	virtualFlag     = "virtual"
)

func benchCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "sweep an endpoint over concurrencies or request rates",
		Description: "Each run replays a trace that is drawn like those of moontide synth, and has its own folder in\n" +
			"--out. Prompts differ from run to run, so that no run finds a warm cache; repeat a sweep with\n" +
			"another --salt. The same command with the same --out resumes an interrupted sweep: it does the\n" +
			"missing runs, and repeats INVALID ones. Give several URLs as label=URL to get a table of each\n" +
			"and the ratios to the first. Without --url a simulated endpoint runs in this process; with --virtual\n" +
			"the same engines run in virtual time, without HTTP. Gates apply to every run.\n\n" +
			"A DIST is a number of tokens or a distribution, such as uniform:100:2000 or lognormal:1000:1.5;\n" +
			"moontide synth --help lists them all.\n\n" + gateHelp,
		Flags:  benchFlags(),
		Action: func(c *cli.Context) error { return runBench(c, std, stop) },
	}
}

// benchFlags returns bench's own flags, those that describe requests, and those
// of runs against an endpoint.
func benchFlags() []cli.Flag {
	described := slices.DeleteFunc(describeFlags(), func(f cli.Flag) bool {
		// --rate is a list here, and --duration is that of a run.
		return f.Names()[0] == rateFlag || f.Names()[0] == durationFlag.Name
	})
	return slices.Concat([]cli.Flag{
		repeatable(cli.GenericFlag{Name: "url", Category: inTarget, Usage: "`URL` of an OpenAI-compatible endpoint, or label=URL for each of several", DefaultText: "an embedded simulated endpoint"}),
		&cli.StringFlag{Name: concurrencyFlag, Category: inLoad, Usage: "one run for each of `N,N,..`, with that many requests in flight"},
		&cli.StringFlag{Name: rateFlag, Category: inLoad, Aliases: []string{"request-rate"}, Usage: "one run for each of `R,R,..`, at that many requests per second; inf sends all at once"},
		&cli.IntFlag{Name: numPromptsFlag, Category: inLoad, Usage: "number of requests per run", DefaultText: "10 times the concurrency, or a minute at the rate"},
		&cli.BoolFlag{Name: virtualFlag, Category: inLoad, Usage: "simulate the runs in virtual time, like moontide simulate; takes engine flags and no --url"},
		&cli.StringFlag{Name: outFlag.Name, Category: inOutput, Usage: "`DIR`: sweep folder, with a folder for each run", DefaultText: "a new folder under runs"},
		&cli.BoolFlag{Name: "markdown", Category: inOutput, Usage: "print Markdown tables"},
		&cli.BoolFlag{Name: "csv", Category: inOutput, Usage: "print one CSV table"},
		&cli.StringFlag{Name: "png", Category: inOutput, Usage: "also plot throughput against latency to `FILE`; - for standard output"},
		&cli.IntFlag{Name: blockSizeFlag.Name, Category: ofDescriptions, Usage: "block size in tokens; prefixes are shared in whole blocks", DefaultText: "512; what fits shared prefixes; about 16 with --turns"},
	}, described, endpointFlags(), runFlags(), []cli.Flag{keepReasoningFlag})
}

// runBench executes the runs of a sweep and shows the results, even if the
// sweep was not completed.
func runBench(c *cli.Context, std streams, stop stop) error {
	plan, err := planOf(c)
	if err != nil {
		return err
	}
	form, err := chosenForm(c, "markdown", "csv")
	if err != nil {
		return err
	}
	files, err := filesOf(c, form, "png")
	if err != nil {
		return err
	}
	cfg, err := sweepConfig(c, std, stop)
	if err != nil {
		return err
	}
	view, err := viewOf(c)
	if err != nil {
		return err
	}
	if err := checkPNG(files.path("png")); err != nil {
		return err
	}
	descriptions, err := legDescriptions(c, std, plan)
	if err != nil {
		return err
	}
	cfg.Flags = commonFlags(c)
	dir := cfg.Dir
	if dir == "" {
		dir = bench.NewFolder("runs", "bench")
	}
	runs, err := bench.RunSweep(stop.now, bench.SweepConfig{
		Sweep: plan, Run: cfg, Dir: dir,
		Trace: func(leg bench.Leg) (bench.Trace, error) {
			d := descriptions[leg.Name]
			return bench.Trace{Name: leg.Name + ".jsonl", Requests: d.Requests(), BlockSize: d.BlockSize()}, nil
		},
		Save: func(result *bench.Result) error {
			sayDamaged(std, result.Damaged)
			return saveReports(std, result, view)
		},
		Each: func(r bench.LegResult) { sayLeg(std, r) },
	})
	if err != nil {
		err = runError(c, err)
	}
	if runs == nil {
		return err
	}
	std.say("the runs are in %s", dir)
	if misuse := (usageError{}); err != nil && !errors.As(err, &misuse) {
		err = fmt.Errorf("%w; to continue, repeat the command with --out %s", err, dir)
	}
	if len(runs) > 0 {
		err = errors.Join(err, showSweep(std, plan, sweepReport(c, plan, runs, view), runs, view, form, files))
	}
	if err != nil {
		return err
	}
	var all report.Runs
	for _, r := range runs {
		all = append(all, reported(r.Result, view))
	}
	return outcomeOf(all)
}

// sweepConfig returns what the runs of a sweep have in common.
func sweepConfig(c *cli.Context, std streams, stop stop) (bench.Config, error) {
	if !c.Bool(virtualFlag) {
		return replayConfig(c, std, stop)
	}
	if c.IsSet("url") {
		return bench.Config{}, misused("bench: --virtual simulates the endpoint: it takes no --url")
	}
	if name := firstGiven(c, requestFlags()); name != "" {
		return bench.Config{}, misused("bench: --%s is for requests over HTTP: --virtual sends none", name)
	}
	return virtualConfig(c, std, stop)
}

// legDescriptions returns the description of each run, by its name.
func legDescriptions(c *cli.Context, std streams, plan bench.Sweep) (map[string]*spec.Spec, error) {
	descriptions := map[string]*spec.Spec{}
	for i, leg := range plan.Legs() {
		d, err := legDescription(c, std, leg)
		if err != nil {
			return nil, err
		}
		if descriptions[leg.Name] = d; i == 0 { // they differ only in load
			for _, note := range roundedSharing(d) {
				std.say("%s", note)
			}
		}
	}
	return descriptions, nil
}

func planOf(c *cli.Context) (plan bench.Sweep, err error) {
	plan.Axis, plan.Prompts, plan.Ceiling = bench.Concurrency, c.Int(numPromptsFlag), c.Int(maxConcurrencyFlag.Name)
	text := c.String(concurrencyFlag)
	if c.IsSet(rateFlag) {
		plan.Axis, text = bench.Rate, c.String(rateFlag)
	}
	switch {
	case c.NArg() > 0:
		return plan, misused("bench: takes no argument: %q", c.Args().Slice())
	case c.IsSet(concurrencyFlag) == c.IsSet(rateFlag):
		return plan, misused("bench: want either --concurrency or --rate")
	case plan.Axis == bench.Concurrency && c.IsSet(maxConcurrencyFlag.Name):
		return plan, misused("bench: --max-concurrency goes with --rate, not with --concurrency")
	case describedBy(c) == "":
		return plan, misused("bench: describe the requests with --isl and --osl, or with --spec")
	case c.String(specFlag.Name) == "-":
		return plan, misused("bench: --spec must be a file: it is read for each run")
	}
	if plan.Levels, err = bench.ParseLevels(plan.Axis, text); err != nil {
		return plan, misused("bench: --%s: %w", plan.Axis, err)
	}
	if plan.Targets, err = bench.ParseTargets(textsOf(c, "url")); err != nil {
		return plan, misused("bench: --url: %w", err)
	}
	return plan, nil
}

// checkPNG checks in advance that the figure can be written.
func checkPNG(path string) error {
	if path == "" || path == "-" {
		return nil
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		return fmt.Errorf("writing %w", err)
	}
	f.Discard()
	return nil
}

// commonFlags returns the given flags that affect every run of a sweep.
func commonFlags(c *cli.Context) []string {
	ofOneCommand := []string{concurrencyFlag, rateFlag, numPromptsFlag, "markdown", "csv", "png"}
	return slices.DeleteFunc(setFlags(c), func(given string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(given, "--"), "=")
		return slices.Contains(ofOneCommand, name)
	})
}
