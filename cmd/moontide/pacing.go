package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"moontide/cmd/moontide/clidoc"
	"moontide/trace"
)

func pacingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "start", Category: inLoad, Usage: "drop the rows before `TIME` of the trace, which becomes 0"},
		&cli.DurationFlag{Name: "end", Category: inLoad, Usage: "drop the rows from `TIME` of the trace on", DefaultText: "the trace's end"},
		&cli.IntFlag{Name: "limit", Category: inLoad, Aliases: []string{"take", "num-prompts"}, Usage: "use the first `N` rows; a shorter trace is not repeated", DefaultText: "all"},
		&cli.BoolFlag{Name: "spread-grid", Category: inLoad, Usage: "spread requests that share a coarse timestamp over that step of the trace's clock"},
		&cli.Float64Flag{Name: "rate", Category: inLoad, Usage: "replace the arrivals: `R` requests per second, or inf for all at once", DefaultText: "the trace's arrivals"},
		&clidoc.ChoiceFlag{
			StringFlag: cli.StringFlag{Name: "arrival", Category: inLoad, Value: trace.Poisson, Usage: "`PROCESS`: arrival process for --rate: %s"},
			Choices:    clidoc.OneOf(trace.Distributions()...),
		},
		&cli.Float64Flag{Name: "burstiness", Category: inLoad, Value: 1, Usage: "`K`: shape of gamma arrivals: below 1 they come in bursts"},
		&cli.Float64Flag{Name: "speedup", Category: inLoad, Aliases: []string{"speed"}, Value: 1, Usage: "divide all times by `X`"},
		&cli.DurationFlag{Name: "ramp", Category: inLoad, Usage: "ramp the rate up linearly from 0 over `TIME`, after --speedup"},
	}
}

func pacingOf(c *cli.Context) (trace.Pacing, error) {
	p := trace.Pacing{
		Start: c.Duration("start"), End: c.Duration("end"), Limit: c.Int("limit"), SpreadGrid: c.Bool("spread-grid"),
		Speedup: c.Float64("speedup"), Ramp: c.Duration("ramp"), Seed: c.Uint64("seed"),
	}
	if c.IsSet("rate") {
		p.Arrivals = &trace.Arrivals{Distribution: c.String("arrival"), Rate: c.Float64("rate"), Burstiness: c.Float64("burstiness"), Seed: p.Seed}
	} else if c.IsSet("arrival") || c.IsSet("burstiness") {
		return p, misused("%s: --arrival and --burstiness need --rate", c.Command.Name)
	}
	if err := p.Check(); err != nil {
		return p, misused("%s: %w", c.Command.Name, err)
	}
	return p, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
