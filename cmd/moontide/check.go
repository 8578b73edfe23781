package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/trace"
	"moontide/trace/check"
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
	r, err := openTrace(std, path, opts)
	if err != nil {
		return err
	}
	defer r.Close()
	found, err := check.Run(&interruptible{Source: checkable(std, path, r), until: c.Context}, check.Options{BlockSize: blockSizeOf(c, r)})
	reportReader(std, path, r, false)
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

// interruptible ends a check when the user interrupts, and lowers the GC target for long
// traces like [collectOften].
type interruptible struct {
	check.Source
	until context.Context
	rows  int
}

func (i *interruptible) Read(r *trace.Request) error {
	if i.rows++; i.rows == longTrace {
		debug.SetGCPercent(longTraceGC)
	}
	if err := i.until.Err(); err != nil {
		return err
	}
	return i.Source.Read(r)
}
