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
	"moontide/replay/experiment"
)

func calibrateCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Usage: "measure how much load this machine can generate and how accurate its timestamps are",
		Description: "Runs the simulated endpoint in a separate process that reports when it wrote each event. The load rises, " +
			"with streams evenly phased and in lock-step; loads whose p99 errors are below 1 ms are the calibrated range. " +
			"Takes about 40 seconds. Later runs on this machine report if they exceeded the range.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Category: inOutput, Usage: "`FILE`: result file (JSON)", DefaultText: "the one that later runs read"},
		},
		Action: func(c *cli.Context) error { return calibrate(c, std, stop) },
	}
}

func calibrate(c *cli.Context, std streams, stop stop) error {
	if c.NArg() > 0 {
		return misused("takes no argument: %q", c.Args().Slice())
	}
	path := c.String("out")
	if path == "" {
		path = calibrationFile()
	}
	cfg := experiment.CalibrateConfig{
		Start: startEndpoint, Version: version(),
		Each: func(p experiment.LoadResult) { std.say("%s", report.CalibrationLine(p)) },
	}
	leaveRoomForThreads()
	result, err := experiment.Calibrate(stop.gently, cfg)
	if err != nil {
		return endedBy(err)
	}
	if path != "" {
		if err := result.Save(path); err != nil {
			return err
		}
		std.say("saved in %s", path)
	}
	return std.print(func(w io.Writer) error { return terminalOf(w).Write(w, report.Calibration(result)) })
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

// unlimited has the flags of an endpoint whose only time is its pace.
var unlimited = append(words("serve --listen 127.0.0.1:0 --json --prefill-per-token 0s --decode-per-sequence 0s --decode-per-context-token 0s "+
	"--max-num-seqs 1000000 --max-num-batched-tokens 100000000 --num-gpu-blocks 100000000 --max-model-len 1000000"), "--"+untilInputEndsFlag)

// startEndpoint runs moontide serve in a separate process.
func startEndpoint(ctx context.Context, p experiment.Pace) (experiment.Endpoint, error) {
	self, err := os.Executable()
	if err != nil {
		return experiment.Endpoint{}, fmt.Errorf("starting an endpoint: %w", err)
	}
	return experiment.StartEndpoint(exec.CommandContext(ctx, self, pacedEndpoint(p)...))
}

// pacedEndpoint returns the arguments of an endpoint with a pace.
func pacedEndpoint(p experiment.Pace) []string {
	step, phased := time.Duration(0), p.TPOT
	if p.LockStep {
		step, phased = p.TPOT, 0
	}
	return append(unlimited, "--step-base", step.String(), "--phased-tpot", phased.String())
}
