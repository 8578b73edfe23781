package main

import (
	"cmp"
	"io"

	"github.com/urfave/cli/v2"

	"moontide/synth/sessions"
	"moontide/trace"
	"moontide/trace/format"
)

// sessionsFlags are the flags of the default method.
func sessionsFlags() []cli.Flag {
	return group(ofSessions,
		&cli.Float64Flag{Name: "rate-scale", Aliases: []string{"rate-multiplier"}, Value: 1, Usage: "multiply the rate of new conversations by `X`; pauses within them do not change"},
		&cli.StringFlag{Name: "only", Usage: "generate only the conversations of this `CLIENT`, as listed by fit"},
	)
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
		return draft{}, misused("synth: --rate-scale: %w", err)
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
		if c.IsSet(blockSizeFlag.Name) {
			return nil, misused("synth: --block-size has no effect on a model: the block size of %s is %d tokens", traceName(from), m.BlockSize().Tokens)
		}
		return m, nil
	})
}
