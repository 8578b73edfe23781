package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"moontide/synth"
)

func synthCommand(std streams) *cli.Command {
	return &cli.Command{
		Name:      "synth",
		Usage:     "make a trace that shares prefixes as a given one does",
		ArgsUsage: " ",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "the `TRACE` to learn from"},
			&cli.IntFlag{Name: "num-requests", Aliases: []string{"n"}, Usage: "rows to make"},
			&cli.Uint64Flag{Name: "seed", Usage: "the same seed gives the same bytes"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "-", Usage: "`FILE` to write (.gz and .zst are compressed), - for standard output"},
			blockSizeFlag, skipBadRowsFlag,
		},
		Action: func(c *cli.Context) error { return synthesize(c, std) },
	}
}

func synthesize(c *cli.Context, std streams) error {
	from, n := c.String("from"), c.Int("num-requests")
	switch {
	case c.NArg() > 0:
		return misused("synth: takes no argument: %q (the source is --from)", c.Args().Slice())
	case from == "":
		return misused("synth: --from names the trace to learn from")
	case n < 1:
		return misused("synth: --num-requests is not a positive number: %d", n)
	}
	if err := checkBlockSize(c); err != nil {
		return err
	}
	r, err := openTrace(c, std, from)
	if err != nil {
		return err
	}
	defer r.Close()
	model, err := synth.FitTree(until(c.Context, r.Requests()), synth.TreeOptions{BlockSize: c.Int(blockSizeFlag.Name)})
	reportSkipped(std, from, r)
	if err != nil {
		return named(from, err)
	}
	fmt.Fprintf(std.err, "moontide: block size: %s\n", model.BlockSize())
	if k := model.Irregular(); k > 0 {
		fmt.Fprintf(std.err, "moontide: rows whose ids do not cover their prompt exactly: %d\n", k)
	}
	output := c.String("output")
	rows, err := writeTrace(std, output, until(c.Context, model.Requests(c.Uint64("seed"), n)))
	if err != nil {
		return err
	}
	if output != "-" {
		fmt.Fprintf(std.err, "moontide: %d requests written to %s\n", rows, output)
	}
	return nil
}
