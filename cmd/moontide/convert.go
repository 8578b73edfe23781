package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/trace"
)

func convertCommand(std streams) *cli.Command {
	return &cli.Command{
		Name:      "convert",
		Usage:     "merge, cut, scale and re-time traces",
		ArgsUsage: "TRACE...",
		Description: "Several inputs are merged by arrival; their block and session ids are taken to mean the\n" +
			"same things. Then, in this order: sort, window, sample, shard, take, rate, speed.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "-", Usage: "`FILE` to write (.gz and .zst are compressed), - for standard output"},
			&cli.BoolFlag{Name: "sort", Usage: "put rows in order of arrival (holds the trace in memory)"},
			&cli.DurationFlag{Name: "start", Usage: "keep rows from this time of the trace on, which becomes 0: `90s`, 10m"},
			&cli.DurationFlag{Name: "end", Usage: "keep rows before this time of the trace: `20m`"},
			&cli.Float64Flag{Name: "sample", Value: 1, Usage: "keep this share of the sessions, or of the rows without one"},
			&cli.StringFlag{Name: "shard", Usage: "keep part `i/n`, from 1/n to n/n; all parts together are the trace"},
			&cli.IntFlag{Name: "take", Usage: "keep the first `N` rows"},
			&cli.Float64Flag{Name: "rate", Usage: "give rows new arrivals, at `R` requests a second"},
			&cli.StringFlag{Name: "arrival", Value: trace.Poisson, Usage: "law of the new arrivals: constant, poisson or gamma"},
			&cli.Float64Flag{Name: "burstiness", Value: 1, Usage: "shape of the gamma law: below 1 comes in bursts"},
			&cli.Float64Flag{Name: "speed", Value: 1, Usage: "divide all times by `X`"},
			&cli.Uint64Flag{Name: "seed", Usage: "of --sample and of --arrival"},
			skipBadRowsFlag,
		},
		Action: func(c *cli.Context) error { return convert(c, std) },
	}
}

func convert(c *cli.Context, std streams) error {
	if c.NArg() == 0 {
		return misused("convert: name one or more traces")
	}
	reshape, err := reshaping(c)
	if err != nil {
		return err
	}
	var inputs []trace.Requests
	var readers []*trace.Reader
	for _, path := range c.Args().Slice() {
		r, err := openTrace(c, std, path)
		if err != nil {
			return err
		}
		defer r.Close()
		readers = append(readers, r)
		rows := r.Requests()
		if c.NArg() > 1 && !c.Bool("sort") { // a merge of what is in no order is in none
			rows = locatedRows(trace.InOrder(rows), path, r)
		}
		inputs = append(inputs, rows)
	}
	output := c.String("output")
	rows, err := writeTrace(std, output, reshape(until(c.Context, trace.Merge(inputs...))))
	for i, r := range readers {
		reportSkipped(std, c.Args().Get(i), r)
	}
	if err != nil {
		return err
	}
	if output != "-" {
		fmt.Fprintf(std.err, "moontide: %d requests written to %s\n", rows, output)
	}
	return nil
}

// reshaping is what the flags make of a trace.
func reshaping(c *cli.Context) (func(trace.Requests) trace.Requests, error) {
	shard, shards, err := parseShard(c.String("shard"))
	if err != nil {
		return nil, err
	}
	arrivals := trace.Arrivals{Law: c.String("arrival"), Rate: c.Float64("rate"), Burstiness: c.Float64("burstiness"), Seed: c.Uint64("seed")}
	if c.IsSet("rate") {
		if err := arrivals.Check(); err != nil {
			return nil, misused("convert: %v", err)
		}
	}
	start, end := milliseconds(c.Duration("start")), math.Inf(1)
	if c.IsSet("end") {
		end = milliseconds(c.Duration("end"))
	}
	sample, speed, take := c.Float64("sample"), c.Float64("speed"), c.Int("take")
	switch {
	case start < 0 || end <= start:
		return nil, misused("convert: the window from --start %v to --end %v is empty", c.Duration("start"), c.Duration("end"))
	case !(sample > 0 && sample <= 1):
		return nil, misused("convert: --sample is not a share above 0 and up to 1: %v", sample)
	case c.IsSet("take") && take < 1:
		return nil, misused("convert: --take is not a positive number: %d", take)
	case !(speed > 0) || math.IsInf(speed, 0):
		return nil, misused("convert: --speed is not a positive number: %v", speed)
	case !c.IsSet("rate") && (c.IsSet("arrival") || c.IsSet("burstiness")):
		return nil, misused("convert: --arrival and --burstiness go with --rate")
	}
	return func(reqs trace.Requests) trace.Requests {
		if c.Bool("sort") {
			reqs = trace.Sort(reqs)
		}
		if c.IsSet("start") || c.IsSet("end") {
			reqs = trace.Window(reqs, start, end)
		}
		if sample < 1 {
			reqs = trace.Sample(reqs, sample, c.Uint64("seed"))
		}
		if shards > 1 {
			reqs = trace.Shard(reqs, shard, shards)
		}
		if take > 0 {
			reqs = trace.Take(reqs, take)
		}
		if c.IsSet("rate") {
			reqs = trace.Retime(reqs, arrivals)
		}
		if speed != 1 {
			reqs = trace.Speed(reqs, speed)
		}
		return reqs
	}, nil
}

// parseShard reads "i/n", where i counts from 1, and returns i from 0.
func parseShard(text string) (i, n int, err error) {
	if text == "" {
		return 0, 1, nil
	}
	part, of, ok := strings.Cut(text, "/")
	i, errPart := strconv.Atoi(part)
	n, errOf := strconv.Atoi(of)
	if !ok || errPart != nil || errOf != nil || i < 1 || i > n {
		return 0, 0, misused("convert: --shard is not i/n with i from 1 to n: %q", text)
	}
	return i - 1, n, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
