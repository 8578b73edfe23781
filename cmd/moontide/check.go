package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/trace/check"
	"moontide/trace/format"
)

func checkCommand(std streams, _ stop) *cli.Command {
	return &cli.Command{
		Usage:  "list every irregularity of a trace; exits 1 if it cannot be replayed faithfully",
		Flags:  append(slices.Concat(readFlags(), outputFlags(oneOf(words("json markdown")...))), blockSizeFlag),
		Action: func(c *cli.Context) error { return checkTrace(c, std) },
	}
}

func checkTrace(c *cli.Context, std streams) error {
	path, err := one(c, "TRACE")
	if err != nil {
		return err
	}
	out, err := outputsOf(c)
	if err != nil {
		return err
	}
	opts := formatOptions(c)
	opts.SkipBadRows = true
	in, err := openTrace(c, std, path, path, opts)
	if err != nil {
		return err
	}
	defer in.Close()
	in.keep()
	// A check needs one line per row; some formats have several rows per line or several files.
	if in.countsRows = slices.Contains([]format.Format{format.Weka, format.Dynamo, format.ShareGPT}, in.Format()) || isFolder(path); in.countsRows {
		std.say("%s: line numbers are those of the converted trace", traceName(path))
	}
	found, err := check.Run(in, check.Options{BlockSize: in.blockSize()})
	in.report(false)
	if err != nil {
		return err
	}
	if err := out.show(std, resultsOf(report.Check{Name: traceName(path), Report: found})); err != nil {
		return err
	}
	if !found.Replayable() {
		return fmt.Errorf("%s cannot be replayed faithfully", path)
	}
	return nil
}
