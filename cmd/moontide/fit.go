package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report/doc"
	"moontide/synth/sessions"
)

func fitCommand(std streams, _ stop) *cli.Command {
	return &cli.Command{
		Name:  "fit",
		Usage: "learn a model of a trace: a small, shareable file for synth --from",
		Description: "The file holds no row and no id of the trace, and nothing based on fewer than five requests, so it can be given away. " +
			"synth --from MODEL makes the same trace as synth --from TRACE.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Category: inOutput, Aliases: []string{"o"}, Value: "-", Usage: "`FILE` to write; - is standard output"},
			blockSizeFlag, skipBadRowsFlag,
		}, readFlags()...),
		Action: func(c *cli.Context) error { return fitTrace(c, std) },
	}
}

func fitTrace(c *cli.Context, std streams) error {
	path, err := one(c, "TRACE")
	if err != nil {
		return err
	}
	model, err := fitSessions(c, std, path, func(io.Reader) (*sessions.Model, error) {
		return nil, fmt.Errorf("%s is already a model", traceName(path))
	})
	if err != nil {
		return err
	}
	write := func(w io.Writer) error {
		_, err := model.WriteTo(w)
		return err
	}
	output := c.String("output")
	if err := writeFile(std, output, write); err != nil || output == "-" {
		return err
	}
	std.say("model of %s written to %s", doc.Count(model.SourceRequests(), "request"), filepath.Base(output))
	return nil
}
