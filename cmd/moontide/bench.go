package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/replay/experiment"
)

// Flags of bench only.
const (
	concurrencyFlag = "concurrency"
	rateFlag        = "rate"
	speedupFlag     = "speedup"
	shapeFlag       = "shape"
	numPromptsFlag  = "num-prompts"
	virtualFlag     = "virtual"
)

func benchCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Usage: "sweep an endpoint over concurrency levels, request rates or trace speedups",
		Description: "Each run replays TRACE or, without one, a generated trace as from moontide synth, and has its own folder " +
			"in --out. Prompts differ from run to run, so that no run finds a warm cache; repeat a sweep with another " +
			"--salt. The same command with the same --out executes the runs that are missing or INVALID.\n\n" +
			"Give several URLs as label=URL to get a table for each, and the ratios to the first. Without --url a " +
			"simulated endpoint runs in this process, with --virtual in virtual time; lists such as --engines 1,2,4 are " +
			"deployments to compare.\n\n" +
			"--find searches for the highest load that meets --slo: it brackets the load, bisects in steps of 5 %, and runs " +
			"both sides of the answer three times. If an INVALID run limits the answer, the exit status is 3; if no load " +
			"meets the conditions, 4.\n\n" +
			"A DIST is a number of tokens or a distribution, such as lognormal:1000:1.5; see moontide synth --help.\n\n" +
			gateHelp,
		Flags:  benchFlags(),
		Action: func(c *cli.Context) error { return runBench(c, std, stop) },
	}
}

// benchFlags returns bench's own flags, and those of descriptions, of rows of a trace, and of
// runs.
func benchFlags() []cli.Flag {
	described := slices.DeleteFunc(describeFlags(), func(f cli.Flag) bool {
		// --rate is a list here, and --duration is that of a run.
		return f.Names()[0] == rateFlag || f.Names()[0] == durationFlag.Name
	})
	rows := slices.DeleteFunc(pacingFlags(), func(f cli.Flag) bool { return !slices.Contains(rowFlags, f.Names()[0]) })
	return slices.Concat([]cli.Flag{
		repeatable(cli.GenericFlag{Name: "url", Category: inTarget, Usage: "`URL` of an OpenAI-compatible endpoint, or label=URL for each of several", DefaultText: "an embedded simulated endpoint"}),
		&cli.StringFlag{Name: concurrencyFlag, Category: inLoad, Usage: "one run for each of `N,N,..`, with this many requests in flight"},
		&cli.StringFlag{Name: rateFlag, Category: inLoad, Aliases: []string{"request-rate"}, Usage: "one run for each of `R,R,..`, at this many requests per second; inf sends all at once"},
		&cli.StringFlag{Name: speedupFlag, Category: inLoad, Aliases: []string{"speed"}, Usage: "one run for each of `X,X,..`, with all times of TRACE divided by X", DefaultText: "1 for a TRACE without --rate and --concurrency"},
		&cli.IntFlag{Name: numPromptsFlag, Category: inLoad, Usage: "number of requests per run", DefaultText: "10 times the concurrency, a minute at the rate, or all of TRACE"},
		&cli.BoolFlag{Name: virtualFlag, Category: inLoad, Usage: "simulate the runs in virtual time, like moontide simulate; takes engine flags and no --url"},
		&cli.StringFlag{Name: outFlag.Name, Category: inOutput, Usage: "`DIR`: sweep folder, with a folder for each run", DefaultText: "a new folder under runs"},
		&cli.IntFlag{Name: blockSizeFlag.Name, Category: ofDescriptions, Usage: "block size in tokens; prefixes are shared in whole blocks", DefaultText: "that of TRACE; else 512, a size that divides shared prefixes, or about 16 with --turns"},
		&cli.StringFlag{Name: shapeFlag, Category: ofDescriptions, Usage: "`ISL:OSL,..`: run all levels for each of several shapes; replaces --isl and --osl"},
	}, runOutputFlags(), findFlags(), described, rows, formatFlags(inTraceInput), []cli.Flag{skipBadRowsFlag}, sentFlags(listedEngineFlags()), runFlags())
}

// runBench executes the runs of a sweep and shows the results, even if the
// sweep was not completed.
func runBench(c *cli.Context, std streams, stop stop) error {
	q, err := parseBench(c, std, stop)
	if err != nil {
		return err
	}
	remove, err := q.setRequests(c, std)
	if err != nil {
		return err
	}
	defer remove()
	cfg := q.sweep
	cfg.Save = func(result *experiment.Result) error {
		std.sayAll("%s", result.Damaged)
		return saveReports(std, result, q.view)
	}
	cfg.Each = func(r experiment.LegResult) { sayLeg(std, r) }
	if q.find {
		q.sweep = cfg
		return runFind(c, std, stop, &q)
	}
	runs, err := experiment.RunSweep(stop.now, cfg)
	if err != nil {
		err = runError(c, err)
	}
	if runs == nil {
		return err
	}
	err = sweepEnded(std, cfg.Dir, err)
	if len(runs) == 0 {
		return err
	}
	set := report.SweepOf(sweepSubject(c, runs[len(runs)-1].Run.Target), runs, q.view)
	if err := errors.Join(err, q.show(std, set)); err != nil {
		return err
	}
	return setOutcome(set)
}

// sweepEnded reports the folder of the runs and, after an error, how to continue.
func sweepEnded(std streams, dir string, err error) error {
	std.say("the runs are in %s", dir)
	if err != nil && statusOf(err) != exitMisused {
		err = fmt.Errorf("%w; to continue, repeat the command with --out %s", err, dir)
	}
	return err
}

// sweepConfig returns the common configuration of the runs of a sweep, without engines.
func sweepConfig(c *cli.Context, std streams, stop stop) (experiment.Config, error) {
	if !c.Bool(virtualFlag) {
		if name := firstGiven(c, engineFlags()); name != "" && c.IsSet("url") {
			return experiment.Config{}, misused("bench: --%s is for the embedded endpoint, which --url replaces", name)
		}
		return drivenConfig(c, std, stop)
	}
	if c.IsSet("url") {
		return experiment.Config{}, misused("bench: --virtual simulates the endpoint: it takes no --url")
	}
	if name := firstGiven(c, requestFlags()); name != "" {
		return experiment.Config{}, misused("bench: --%s is for requests over HTTP: --virtual sends none", name)
	}
	return virtualRunConfig(c, std, stop), nil
}

// commonFlags returns the given flags that affect every run of a sweep. Lists of engine
// flags are in the labels of the runs instead.
func commonFlags(c *cli.Context) []string {
	ofOneCommand := []string{maxRunsFlag, concurrencyFlag, rateFlag, speedupFlag, shapeFlag, numPromptsFlag}
	for _, ch := range choicesOf(c)[0] {
		if ch.varies {
			ofOneCommand = append(ofOneCommand, ch.flag)
		}
	}
	return setFlags(c, ofOneCommand...)
}
