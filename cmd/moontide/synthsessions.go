package main

import (
	"cmp"
	"io"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report/doc"
	"moontide/synth/sessions"
	"moontide/trace"
	"moontide/trace/format"
)

// The values of --beyond.
const beyondRepeat, beyondHold = "repeat", "hold"

// sessionsFlags are the flags of the default method.
func sessionsFlags() []cli.Flag {
	return group(ofSessions,
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "beyond", Value: beyondRepeat, Usage: "`BEHAVIOR` of a trace beyond the length of its source: %s"},
			Choices:    oneOf(beyondRepeat, beyondHold).Noted(beyondRepeat, "the source's, with new conversations").Noted(beyondHold, "that of its last regime"),
		},
		&cli.Float64Flag{Name: "rate-scale", Aliases: []string{"rate-multiplier"}, Value: 1, Usage: "multiply the rate of new conversations by `X`; pauses within them do not change"},
		clientsFlag(),
		&cli.StringFlag{Name: "only", Usage: "generate only the requests of this `CLIENT`, as listed by fit"},
	)
}

const clientsFlagName = "clients"

func clientsFlag() cli.Flag {
	return &cli.IntFlag{
		Name: clientsFlagName, Category: inFit, DefaultText: "those that the rows name",
		Usage: "learn at most `N` clients; without client names in the rows, cluster similar conversations",
	}
}

func draftSessions(c *cli.Context, std streams) (draft, error) {
	if name := firstGiven(c, treeFlags()); name != "" {
		return draft{}, misused("synth: --%s only works with --method tree", name)
	}
	model, err := sessionsModel(c, std)
	if err != nil {
		return draft{}, err
	}
	if c.IsSet("only") {
		if model, err = model.Only(c.String("only")); err != nil {
			return draft{}, misused("synth: --only: %v", err)
		}
	}
	n := cmp.Or(c.Int("num-requests"), model.SourceRequests())
	if model, err = model.AtRate(c.Float64("rate-scale")); err != nil {
		return draft{}, err
	}
	if c.String("beyond") == beyondHold {
		model = model.Hold()
	}
	return draft{
		write: func(w *format.Writer) (int, error) {
			reqs := trace.Speed(model.Requests(c.Uint64("seed"), n), c.Float64("speedup-ratio"))
			return w.WriteAll(trace.Until(c.Context, reqs))
		},
		notes: func(int) []string { return nil },
	}, nil
}

func sessionsModel(c *cli.Context, std streams) (*sessions.Model, error) {
	from := c.String("from")
	return fitSessions(c, std, from, func(in io.Reader) (*sessions.Model, error) {
		m, err := sessions.Read(in)
		if err != nil {
			return nil, named(inputName(from), err)
		}
		if c.IsSet(clientsFlagName) {
			return nil, misused("synth: --clients has no effect on a model: %s has %s", traceName(from), doc.Count(len(m.Clients()), "client"))
		}
		if c.IsSet(blockSizeFlag.Name) {
			return nil, misused("synth: --block-size has no effect on a model: the block size of %s is %d tokens", traceName(from), m.BlockSize().Tokens)
		}
		return m, nil
	})
}
