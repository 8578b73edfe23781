package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/replay/bench"
	"moontide/replay/runfile"
)

func calibrateCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Name:      "calibrate",
		Usage:     "measure how much load this machine can generate and how exact its timestamps are",
		ArgsUsage: " ",
		Description: "Runs the simulated endpoint in a separate process that reports when it wrote each event, and\n" +
			"raises the load, with streams evenly phased and in lock-step, while the p99 errors stay below\n" +
			"1 ms. Takes less than 50 seconds. Later runs report whether they stayed within the range found.",
		Flags: grouped([]cli.Flag{
			&cli.BoolFlag{Name: "quick", Category: inRunControl, DisableDefaultText: true, Usage: "a few seconds of light load, as a smoke test; the result is not saved"},
			&cli.BoolFlag{Name: "json", Category: inOutput, DisableDefaultText: true, Usage: "print JSON instead of text"},
			&cli.StringFlag{Name: "out", Category: inOutput, Usage: "result `FILE`", DefaultText: "the one that later runs read"},
		}),
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
	dir, err := os.MkdirTemp("", "moontide-calibrate-")
	if err != nil {
		return fmt.Errorf("calibrating: %w", err)
	}
	defer os.RemoveAll(dir)
	cfg := bench.CalibrateConfig{
		Start: startEndpoint, Dir: dir,
		OpenFiles: openFilesLimit(),
		Machine:   bench.ThisMachine(), Version: version(),
		Each: func(p bench.Point) { fmt.Fprintf(std.err, "moontide: %s\n", report.CalibrationLine(p)) },
	}
	if c.Bool("quick") {
		cfg.Ladders = bench.QuickLadders()
	}
	defer collectSeldom()() // as a replay does
	result, err := bench.Calibrate(stop.gently, cfg)
	if err != nil {
		return err
	}
	show := report.CalibrationText
	if c.Bool("json") {
		show = report.CalibrationJSON
	}
	if err := show(std.out, result); err != nil {
		return err
	}
	if path == "" {
		return nil
	}
	if err := result.Save(path); err != nil {
		return err
	}
	fmt.Fprintf(std.err, "moontide: kept in %s\n", path)
	return nil
}

// calibrationFile is where the last calibration is, "" where the user has no
// folder for such files.
func calibrationFile() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "moontide", "calibration.json")
}

// calibrated is the range of this client on this machine, nil where it is not
// known. A note says why not, where something could have told.
func calibrated(path string) (c *runfile.Calibrated, notes []string) {
	if path == "" {
		return nil, nil
	}
	found, err := bench.LoadCalibration(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, []string{err.Error()}
	case !found.For(bench.ThisMachine()):
		return nil, []string{"the client is not calibrated on this machine: what is kept of moontide calibrate is another's"}
	}
	return &runfile.Calibrated{Taken: found.Taken, Range: found.Range}, nil
}

// The flags of an endpoint that sets no limit: only the pace takes time.
var unlimited = []string{
	"serve", "--listen", "127.0.0.1:0", "--" + untilInputEndsFlag,
	"--" + prefillTokenFlag, "0s", "--" + sequenceFlag, "0s", "--" + contextTokenFlag, "0s",
	"--" + maxSeqsFlag, "1000000", "--" + maxBatchedFlag, "100000000", "--" + kvBlocksFlag, "100000000", "--" + maxModelLenFlag, "1000000",
}

// startEndpoint starts this command once more, to serve. It ends with this
// process, however that ends, since its standard input does.
func startEndpoint(ctx context.Context, p bench.Pace) (bench.Endpoint, error) {
	self, err := os.Executable()
	if err != nil {
		return bench.Endpoint{}, fmt.Errorf("starting an endpoint: %w", err)
	}
	step, phased := time.Duration(0), p.TPOT
	if p.LockStep {
		step, phased = p.TPOT, 0
	}
	cmd := exec.CommandContext(ctx, self, append(unlimited, "--"+stepBaseFlag, step.String(), "--"+phasedFlag, phased.String())...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return bench.Endpoint{}, fmt.Errorf("starting an endpoint: %w", err)
	}
	talk, err := cmd.StderrPipe()
	if err != nil {
		return bench.Endpoint{}, fmt.Errorf("starting an endpoint: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return bench.Endpoint{}, fmt.Errorf("starting an endpoint: %w", err)
	}
	said := bufio.NewReader(talk)
	first, _ := said.ReadString('\n')
	url, ok := announced(first)
	heard := make(chan struct{})
	go func() { defer close(heard); io.Copy(io.Discard, said) }() // so that it can go on
	end := func() error {
		in.Close()
		<-heard
		if err := cmd.Wait(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the endpoint ended: %w", err)
		}
		return nil
	}
	if !ok {
		cmd.Process.Kill()
		end()
		return bench.Endpoint{}, fmt.Errorf("starting an endpoint: it says %q", strings.TrimSpace(first))
	}
	return bench.Endpoint{URL: url, PID: cmd.Process.Pid, Close: end}, nil
}

// announced finds the URL in what serve says first.
func announced(line string) (url string, ok bool) {
	_, rest, _ := strings.Cut(line, " on ")
	url, _, ok = strings.Cut(rest, ",")
	return url, ok && strings.HasPrefix(url, "http://")
}
