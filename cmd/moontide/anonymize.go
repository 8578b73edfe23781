package main

import (
	"crypto/rand"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report/doc"
	"moontide/trace"
	"moontide/trace/anonymize"
	"moontide/trace/record"
)

func anonymizeCommand(std streams, _ stop) *cli.Command {
	key := keyFlag("")
	key.DefaultText = "a random key that nobody keeps"
	return &cli.Command{
		Usage: "replace the ids and names in a trace with keyed hashes",
		Description: "Block ids become keyed hashes of 53 bits; session and request names become keyed names. Lengths, order, " +
			"prefix sharing, sessions and dependencies are unchanged. The first arrival becomes time 0. Other keys are " +
			"dropped, except model, priority and what a capture records about answers (lengths, times, outcomes).",
		Flags: append(group(inOutput,
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "-", Usage: "`FILE` to write, compressed if it ends in .gz or .zst; - is standard output"},
			key,
			&cli.DurationFlag{Name: "time-grid", Usage: "round times down to multiples of this `TIME`, such as 1s", DefaultText: "exact times"},
			&cli.BoolFlag{Name: "keep-origin", Usage: "keep the time of the first arrival instead of shifting it to 0"},
			&cli.BoolFlag{Name: "hash-models", Usage: "hash model names, too"},
			repeatable(cli.GenericFlag{Name: "keep", Usage: "keep this `KEY` of rows and its values; repeatable"}),
			repeatable(cli.GenericFlag{Name: "hash", Usage: "keep this `KEY` of rows, such as user, with hashed values; repeatable"}),
		), append(readFlags(), blockSizeFlag, skipBadRowsFlag)...),
		Action: func(c *cli.Context) error { return anonymizeTrace(c, std) },
	}
}

func anonymizeTrace(c *cli.Context, std streams) error {
	if c.NArg() != 1 {
		return misused("anonymize: takes one trace: %q", c.Args().Slice())
	}
	cfg := anonymize.Config{
		TimeGrid: float64(c.Duration("time-grid")) / float64(time.Millisecond), KeepOrigin: c.Bool("keep-origin"),
		HashModels: c.Bool("hash-models"), Keep: textsOf(c, "keep"), Hash: textsOf(c, "hash"),
	}
	if cfg.TimeGrid < 0 {
		return misused("anonymize: --time-grid must not be negative: %v", c.Duration("time-grid"))
	}
	path := c.Args().First()
	in, err := openTrace(c, std, path)
	if err != nil {
		return err
	}
	defer in.Close()
	if file := c.String("key"); file != "" {
		cfg.Key, err = record.OpenKey(file)
	} else {
		rand.Read(cfg.Key[:])
	}
	if err != nil {
		return err
	}
	a, err := anonymize.New(cfg)
	if err != nil {
		return err
	}
	rows, err := writeTrace(std, c.String("output"), locatedRows(a.Rows(trace.Until(c.Context, nonEmpty(in.Borrowed()))), path, in))
	reportReader(std, path, in, true)
	if err != nil {
		return err
	}
	for _, d := range a.Dropped() {
		std.say("%s left out of %s", d.Key, doc.Count(d.Rows, "row"))
	}
	if output := c.String("output"); output != "-" {
		std.say("%s written to %s", doc.Count(rows, "request"), output)
	}
	return nil
}
