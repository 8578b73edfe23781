package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"moontide/analyze/cache"
	"moontide/analyze/report"
)

const checkFlagName = "check"

func checkFlag() cli.Flag {
	return &cli.BoolFlag{Name: checkFlagName, Usage: "also compare a trace of the source's length with the source"}
}

// checkFidelity compares a trace with its source: statistics, distances and hit
// rates. Hit rates depend on the number of requests, so it draws as many as the
// source has. It prints to standard error if the trace goes to standard output.
func checkFidelity(c *cli.Context, std streams, d draft, output string) error {
	from := c.String("from")
	r, err := openTrace(c, std, from)
	if err != nil {
		return err
	}
	defer r.Close()
	source, err := analyzeRequests(c, traceName(from), r.Borrowed(), lineOf(r), blockSizeOf(c, r), cache.Question{})
	if err != nil {
		return named(from, err)
	}
	again, err := d.redraw(source.Analysis.Requests)
	if err != nil {
		return err
	}
	drawn, err := analyzeRequests(c, fmt.Sprintf("synth, seed %d", c.Uint64("seed")), again, nil, c.Int(blockSizeFlag.Name), cache.Question{})
	if err != nil {
		return err
	}
	to := std.out
	if output == "-" {
		to = std.err
	}
	return report.Comparison{source, drawn}.Document().WriteText(to)
}
