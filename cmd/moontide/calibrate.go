package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/replay/bench"
)

func calibrateCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Usage: "measure how much load this machine can generate and how accurate its timestamps are",
		Description: "Runs the simulated endpoint in a separate process that reports when it wrote each event. The load rises, " +
			"with streams evenly phased and in lock-step, as long as p99 errors stay below 1 ms. Takes less than 50 " +
			"seconds. Later runs report whether they stayed within the calibrated range.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "quick", Category: inRunControl, Usage: "run a few seconds of light load as a smoke test; the result is not saved"},
			&cli.BoolFlag{Name: "json", Category: inOutput, Usage: "print JSON instead of text"},
			&cli.StringFlag{Name: "out", Category: inOutput, Usage: "`FILE`: result file", DefaultText: "the one that later runs read"},
		},
		Action: func(c *cli.Context) error { return calibrate(c, std, stop) },
	}
}

func calibrate(c *cli.Context, std streams, stop stop) error {
	if c.NArg() > 0 {
		return misused("calibrate: takes no argument: %q", c.Args().Slice())
	}
	path := c.String("out")
	if path == "" && !c.Bool("quick") {
		path = calibrationFile()
	}
	cfg := bench.CalibrateConfig{
		Start: startEndpoint, Version: version(),
		Each: func(p bench.Point) { std.say("%s", report.CalibrationLine(p)) },
	}
	if c.Bool("quick") {
		cfg.Ladders = bench.QuickLadders()
	}
	leaveRoomForThreads()
	result, err := bench.Calibrate(stop.gently, cfg)
	if err != nil {
		return runError(c, err)
	}
	show := func(w io.Writer) error { return terminalOf(w).Write(w, report.Calibration(result)) }
	if c.Bool("json") {
		show = func(w io.Writer) error { return report.CalibrationJSON(w, result) }
	}
	if err := std.print(show); err != nil {
		return err
	}
	if path == "" {
		return nil
	}
	if err := result.Save(path); err != nil {
		return err
	}
	std.say("saved in %s", path)
	return nil
}

// calibrationFile returns the path of the last calibration, or "" if the user
// has no cache folder.
func calibrationFile() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "moontide", "calibration.json")
}

// unlimited lists the flags of an endpoint without limits: only the pace takes
// time.
var unlimited = append(words("serve --listen 127.0.0.1:0 --json --prefill-per-token 0s --decode-per-sequence 0s --decode-per-context-token 0s "+
	"--max-num-seqs 1000000 --max-num-batched-tokens 100000000 --num-gpu-blocks 100000000 --max-model-len 1000000"), "--"+untilInputEndsFlag)

// startEndpoint runs moontide serve in a separate process.
func startEndpoint(ctx context.Context, p bench.Pace) (bench.Endpoint, error) {
	self, err := os.Executable()
	if err != nil {
		return bench.Endpoint{}, fmt.Errorf("starting an endpoint: %w", err)
	}
	step, phased := time.Duration(0), p.TPOT
	if p.LockStep {
		step, phased = p.TPOT, 0
	}
	return bench.StartEndpoint(exec.CommandContext(ctx, self, append(unlimited, "--step-base", step.String(), "--phased-tpot", phased.String())...))
}
