package main

import (
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/analyze/serving"
	"moontide/replay"
)

func reportCommand(std streams) *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "print what a run measured, from its folder, also of a run that was killed",
		ArgsUsage: "DIR",
		Flags:     []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print the summary as JSON instead of text"}},
		Action: func(c *cli.Context) error {
			dir, err := one(c, "a run's folder")
			if err != nil {
				return err
			}
			run, result, err := measure(std, dir)
			if err != nil {
				return err
			}
			if !c.Bool("json") {
				return report.ServingText(std.out, run, result)
			}
			return report.ServingJSON(std.out, run, result)
		},
	}
}

// measure computes the metrics of the run in a folder.
func measure(std streams, dir string) (replay.Run, *serving.Result, error) {
	recorded, err := replay.OpenFolder(dir)
	if err != nil {
		return replay.Run{}, nil, err
	}
	defer recorded.Close()
	result, err := serving.Compute(recorded.Records(), serving.Options{BlockSize: recorded.Run.Trace.BlockSize})
	if n, reasons := recorded.Damaged(); n > 0 {
		fmt.Fprintf(std.err, "moontide: %s: lines that could not be read: %d, the first: %v\n", filepath.Join(dir, replay.RequestsFile), n, reasons[0])
	}
	return recorded.Run, result, err
}
