package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/replay/bench"
	"moontide/trace/atomicfile"
)

// The flags that are the bench's own.
const (
	concurrencyFlag = "concurrency"
	rateFlag        = "rate"
	numPromptsFlag  = "num-prompts"
)

// ofReplays are the flags of a replay that a bench does not have: the legs of a
// sweep set them, or they are about traces that others wrote.
func ofReplays() []string {
	names := []string{closedFlag.Name, drawnRateFlag.Name, "resume", keepTextFlag.Name, skipBadRowsFlag.Name}
	for _, f := range slices.Concat(pacingFlags(), formatFlags("")) {
		names = append(names, f.Names()...)
	}
	return names
}

func benchCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Name:      "bench",
		Usage:     "sweep an endpoint over concurrencies or request rates",
		ArgsUsage: " ",
		UsageText: "moontide bench --isl 3000 --osl 150 --concurrency 1,2,4,8,16,32,64,128 [--out DIR]\n" +
			"moontide bench --isl 3000 --osl 150 --rate 1,2,4,8 --url base=http://a:8000 --url new=http://b:8000\n" +
			"moontide bench --isl 2000 --osl 512 --request-rate 200 --max-concurrency 10800 --num-prompts 30000 --warmup-time 60s --cooldown-time 60s",
		Description: "Each run replays a trace that is drawn like those of moontide synth, and has its own folder in\n" +
			"--out. Prompts differ from run to run, so that no run finds a warm cache; repeat a sweep with\n" +
			"another --salt. The same command with the same --out resumes an interrupted sweep: it does the\n" +
			"missing runs, and repeats INVALID ones. Give several URLs as label=URL to get a table of each\n" +
			"and the ratios to the first. Without --url a simulated endpoint runs in this process.",
		Flags:  benchFlags(std, stop),
		Action: func(c *cli.Context) error { return runBench(c, std, stop) },
	}
}

// benchFlags are the bench's own flags, those that describe requests, and those
// of a replay, as far as they do not contradict the plan of a sweep.
func benchFlags(std streams, stop stop) []cli.Flag {
	own := []cli.Flag{
		&cli.StringSliceFlag{Name: "url", Category: inTarget, Usage: "`URL` of an OpenAI-compatible endpoint, or label=URL for each of several", DefaultText: "an embedded simulated endpoint"},
		&cli.StringFlag{Name: concurrencyFlag, Category: inLoad, Usage: "one run for each of `N,N,..`, with that many requests in flight"},
		&cli.StringFlag{Name: rateFlag, Category: inLoad, Aliases: []string{"request-rate"}, Usage: "one run for each of `R,R,..`, at that many requests per second"},
		&cli.IntFlag{Name: numPromptsFlag, Category: inLoad, Usage: "`N` requests per run", DefaultText: "10 times the concurrency, or a minute at the rate"},
		&cli.StringFlag{Name: outFlag.Name, Category: inOutput, Usage: "sweep folder `DIR`, with a folder for each run", DefaultText: "a new folder under runs"},
		&cli.BoolFlag{Name: "markdown", Category: inOutput, DisableDefaultText: true, Usage: "print Markdown tables"},
		&cli.BoolFlag{Name: "csv", Category: inOutput, DisableDefaultText: true, Usage: "print one CSV table"},
		&cli.StringFlag{Name: "png", Category: inOutput, Usage: "also plot throughput against latency to `FILE`; - for standard output"},
	}
	taken := ofReplays()
	for _, f := range own {
		taken = append(taken, f.Names()...)
	}
	flags := own
	for _, f := range describeFlags() {
		// --rate is a list here, and --duration is that of a replay.
		if name := f.Names()[0]; name != rateFlag && name != durationFlag.Name {
			flags = append(flags, f)
			taken = append(taken, name)
		}
	}
	flags = append(flags, &cli.IntFlag{
		Name: blockSizeFlag.Name, Category: ofDescriptions, Usage: "tokens a block: beginnings are shared in whole blocks",
		DefaultText: "512; what fits --shared-len; 16 with --turns",
	})
	taken = append(taken, blockSizeFlag.Name)
	for _, f := range replayCommand(std, stop).Flags {
		if !slices.ContainsFunc(f.Names(), func(name string) bool { return slices.Contains(taken, name) }) {
			flags = append(flags, f)
		}
	}
	return grouped(flags)
}

// runBench checks everything that can be wrong before anything is sent, drives
// the sweep, and shows what it measured, also where it could not go to its end.
func runBench(c *cli.Context, std streams, stop stop) error {
	plan, err := planOf(c)
	if err != nil {
		return err
	}
	if err := checkBenchOutputs(c); err != nil {
		return err
	}
	if err := checkReplayFlags(c); err != nil {
		return err
	}
	if err := checkPNG(c.String("png")); err != nil {
		return err
	}
	s := &sweeper{c: c, std: std, stop: stop, plan: plan, dir: c.String(outFlag.Name), points: map[string][]report.SweepPoint{}}
	if s.dir == "" {
		s.dir = freeFolder(filepath.Join("runs", time.Now().Format("20060102-150405")+"-bench"))
	}
	if err := s.prepare(); err != nil {
		return err
	}
	record := bench.SweepRecord{Version: version(), Command: maskedCommand(), Flags: commonFlags(c)}
	folder, err := bench.OpenSweep(s.dir, record)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := s.locate(); err != nil {
		return err
	}
	return s.run()
}

// planOf reads the plan of the sweep.
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
		return plan, misused("bench: want either --concurrency or --rate, with the loads to drive")
	case plan.Axis == bench.Concurrency && c.IsSet(maxConcurrencyFlag.Name):
		return plan, misused("bench: --concurrency says how many are in flight: --max-concurrency goes with --rate")
	case c.IsSet(numPromptsFlag) && plan.Prompts < 1:
		return plan, misused("bench: --num-prompts is not a positive number: %d", plan.Prompts)
	case describedBy(c) == "":
		return plan, misused("bench: --isl and --osl say what requests are like, or --spec names a description")
	case c.String(specFlag.Name) == "-":
		return plan, misused("bench: --spec is read for each run, and standard input can be read once: want a file")
	}
	if plan.Levels, err = bench.ParseLevels(plan.Axis, text); err != nil {
		return plan, misused("bench: --%s: %w", plan.Axis, err)
	}
	if plan.Targets, err = bench.ParseTargets(c.StringSlice("url")); err != nil {
		return plan, misused("bench: --url: %w", err)
	}
	return plan, nil
}

func checkBenchOutputs(c *cli.Context) error {
	switch {
	case c.Bool("markdown") && c.Bool("csv"):
		return misused("bench: --markdown and --csv: print one or the other")
	case c.IsSet("png") && c.String("png") == "":
		return misused("bench: --png names no file")
	case c.String("png") == "-" && (c.Bool("markdown") || c.Bool("csv")):
		return misused("bench: --png - and a table: standard output has room for one")
	}
	return nil
}

// checkPNG finds out whether the picture can be written, which is done after
// hours maybe.
func checkPNG(path string) error {
	if path == "" || path == "-" {
		return nil
	}
	f, err := atomicfile.CreateWhole(path)
	if err != nil {
		return fmt.Errorf("writing %w", err)
	}
	f.Discard()
	return nil
}

// commonFlags are the given flags that hold for every run of a sweep.
func commonFlags(c *cli.Context) []string {
	ofOneCommand := []string{concurrencyFlag, rateFlag, numPromptsFlag, "markdown", "csv", "png"}
	return slices.DeleteFunc(setFlags(c), func(given string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(given, "--"), "=")
		return slices.Contains(ofOneCommand, name)
	})
}
