package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report/doc"
	"moontide/synth/sessions"
)

func fitCommand(std streams, _ stop) *cli.Command {
	return &cli.Command{
		Usage: "make a model of a trace: a small, shareable file for synth --from",
		Description: "The model holds the conversations of the trace: their times, and lengths that are near the real ones. It " +
			"contains no text, no row and no id of the trace. Keys such as user or model keep their values if enough " +
			"requests have them. synth --from MODEL generates the same trace as synth --from TRACE.",
		Flags: append([]cli.Flag{
			dataFlag("-", "`FILE` to write; - is standard output"),
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
	model, err := fitSessions(c, std, path, func(string) (*sessions.Model, error) {
		return nil, fmt.Errorf("%s is already a model", traceName(path))
	})
	if err != nil {
		return err
	}
	output := c.String(outFlag.Name)
	if err := writeFile(std, output, func(w io.Writer) error { _, err := model.WriteTo(w); return err }); err != nil || output == "-" {
		return err
	}
	std.say("model of %s written to %s", doc.Count(model.SourceRequests(), "request"), output)
	if clients := model.Clients(); len(clients) > 1 {
		return std.printText(clientsDocument(clients))
	}
	return nil
}

func clientsDocument(clients []sessions.Client) *doc.Document {
	t := doc.Table{Columns: []string{"client", "requests", "sessions", "mean ISL", "mean OSL"}, Left: 1}
	for _, k := range clients {
		t.Add(k.Name, doc.Int(k.Requests), doc.Int(k.Sessions), doc.Fixed(k.ISL, 0), doc.Fixed(k.OSL, 0))
	}
	d := doc.New("", "")
	d.Section("Clients").Table(t)
	return d
}
