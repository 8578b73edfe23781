package main

import (
	"fmt"
	"io"

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
		Name:        "analyze",
		Usage:       "say what a trace is like: lengths, arrivals, shared prefixes, cache curves",
		ArgsUsage:   "TRACE [TRACE...]",
		Description: "Several traces are shown side by side, with their distances to the first.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print JSON instead of text"},
			&cli.BoolFlag{Name: "markdown", Usage: "print Markdown instead of text"},
			&cli.BoolFlag{Name: "csv", Usage: "print the curves of hit rate against cache size as CSV instead of text"},
			&cli.StringFlag{Name: "html", Usage: "also write the report with figures as one page to `FILE`"},
			&cli.StringFlag{Name: "png", Usage: "also write the figures to `FILE`"},
			&cli.DurationFlag{Name: "ttft", Usage: "with --tpot: the concurrency at a server of this speed"},
			&cli.DurationFlag{Name: "tpot", Usage: "time per output token, with --ttft"},
			blockSizeFlag, skipBadRowsFlag,
		}, cacheFlags...),
		Action: func(c *cli.Context) error { return analyzeTrace(c, std) },
	}
}

// shown is a report in all its forms.
type shown interface {
	Text(io.Writer) error
	JSON(io.Writer) error
	Markdown(io.Writer) error
	HTML(io.Writer) error
}

func analyzeTrace(c *cli.Context, std streams) error {
	if c.NArg() == 0 {
		return misused("analyze: name a trace, or several to compare them with the first")
	}
	if err := checkBlockSize(c); err != nil {
		return err
	}
	asked, err := parseCacheFlags(c)
	if err != nil {
		return err
	}
	if c.IsSet("ttft") != c.IsSet("tpot") || c.Duration("ttft") < 0 || c.Duration("tpot") < 0 {
		return misused("analyze: --ttft and --tpot go together and are not negative")
	}
	if c.NArg() > 1 && (c.Bool("csv") || c.IsSet("png")) {
		return misused("analyze: --csv and --png show one trace")
	}
	var all report.Comparison
	for _, path := range c.Args().Slice() {
		data, err := study(c, std, path, asked)
		if err != nil {
			return err
		}
		if c.Bool("csv") && data.Cache == nil {
			return fmt.Errorf("%s: no row has block ids, so there is no curve", path)
		}
		all = append(all, data)
	}
	var out shown = all
	if len(all) == 1 {
		out = all[0]
	}
	for flag, draw := range map[string]func(io.Writer) error{"html": out.HTML, "png": all[0].PNG} {
		if c.IsSet(flag) {
			if err := writeFile(c.String(flag), draw); err != nil {
				return err
			}
		}
	}
	switch {
	case c.Bool("json"):
		return out.JSON(std.out)
	case c.Bool("markdown"):
		return out.Markdown(std.out)
	case c.Bool("csv"):
		return all[0].Cache.CSV(std.out)
	}
	return out.Text(std.out)
}

// study reads the trace once and computes all that was asked for.
func study(c *cli.Context, std streams, path string, asked cacheQuestion) (report.Dataset, error) {
	data := report.Dataset{Name: traceName(path)}
	r, err := openTrace(c, std, path)
	if err != nil {
		return data, err
	}
	defer r.Close()
	watcher := asked.watcher()
	data.Analysis, err = analyze.Trace(watch(until(c.Context, r.Requests()), watcher.add), analyze.Options{BlockSize: c.Int(blockSizeFlag.Name)})
	reportSkipped(std, path, r)
	if err == analyze.ErrEmpty {
		return data, fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		return data, err
	}
	if p := data.Analysis.Prefix; p != nil {
		if data.Cache, err = watcher.answer(p.BlockSize.Tokens); err != nil {
			return data, err
		}
	}
	if at := data.Analysis.Arrivals; at != nil && c.IsSet("ttft") {
		ttft, tpot := milliseconds(c.Duration("ttft")), milliseconds(c.Duration("tpot"))
		data.Service = &report.Service{TTFT: ttft, TPOT: tpot, Concurrency: at.Concurrency(ttft, tpot)}
	}
	return data, nil
}
