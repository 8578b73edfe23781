package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"moontide/analyze"
	"moontide/analyze/report"
	"moontide/trace"
)

var blockSizeFlag = &cli.IntFlag{
	Name:  "block-size",
	Usage: "tokens a block; 0 finds it from the trace",
}

func checkBlockSize(c *cli.Context) error {
	if n := c.Int(blockSizeFlag.Name); n < 0 || n > trace.MaxLength {
		return misused("--block-size is out of range: %d", n)
	}
	return nil
}

func analyzeCommand(std streams) *cli.Command {
	return &cli.Command{
		Name:      "analyze",
		Usage:     "say what a trace is like: lengths, arrivals, shared prefixes",
		ArgsUsage: "TRACE",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print JSON instead of text"},
			blockSizeFlag, skipBadRowsFlag,
		},
		Action: func(c *cli.Context) error { return analyzeTrace(c, std) },
	}
}

func analyzeTrace(c *cli.Context, std streams) error {
	path, err := one(c, "a trace")
	if err != nil {
		return err
	}
	if err := checkBlockSize(c); err != nil {
		return err
	}
	r, err := openTrace(c, std, path)
	if err != nil {
		return err
	}
	defer r.Close()
	a, err := analyze.Trace(until(c.Context, r.Requests()), analyze.Options{BlockSize: c.Int(blockSizeFlag.Name)})
	reportSkipped(std, path, r)
	if err == analyze.ErrEmpty {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return report.DatasetJSON(std.out, traceName(path), a)
	}
	return report.DatasetText(std.out, traceName(path), a)
}
