package main

import (
	"github.com/urfave/cli/v2"

	"moontide/trace"
)

func pacingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "start", Category: inLoad, Usage: "drop rows before `TIME`, which becomes time 0"},
		&cli.DurationFlag{Name: "end", Category: inLoad, Usage: "drop rows from `TIME` on", DefaultText: "the end of the trace"},
		&cli.IntFlag{Name: "limit", Category: inLoad, Aliases: []string{"take", "num-prompts"}, Usage: "use the first `N` rows; a shorter trace is not repeated", DefaultText: "all"},
		&cli.BoolFlag{Name: "spread-grid", Category: inLoad, Usage: "spread requests that share a coarse timestamp evenly over the clock's step"},
		&cli.Float64Flag{Name: "rate", Category: inLoad, Usage: "replace the arrivals: `R` requests per second, or inf for all at once", DefaultText: "the trace's arrivals"},
		&cli.Float64Flag{Name: "session-rate", Category: inLoad, Usage: "replace the session starts: `R` sessions per second, or inf for all at once; an agent with its sub-agents is one session, and so is a row without a session", DefaultText: "the trace's arrivals"},
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "arrival", Category: inLoad, Value: trace.Poisson, Usage: "`PROCESS`: arrival process for --rate and --session-rate: %s"},
			Choices:    oneOf(trace.Processes()...),
		},
		&cli.Float64Flag{Name: "burstiness", Category: inLoad, Value: 1, Usage: "`K`: shape of gamma arrivals; below 1 is bursty"},
		&cli.Float64Flag{Name: "time-scale-think", Category: inLoad, Value: 1, Usage: "multiply think times by `X`: delays whose delay_kind is think or missing"},
		&cli.Float64Flag{Name: "time-scale-tool", Category: inLoad, Value: 1, Usage: "multiply tool times by `X`: delays whose delay_kind is tool"},
		&cli.DurationFlag{Name: "max-think", Category: inLoad, Usage: "limit think times to `TIME`, after --time-scale-think and before --speedup", DefaultText: "no limit"},
		&cli.Float64Flag{Name: "speedup", Category: inLoad, Aliases: []string{"speed"}, Value: 1, Usage: "divide all times by `X`"},
		&cli.DurationFlag{Name: "ramp", Category: inLoad, Usage: "ramp the rate up linearly from 0 over `TIME`, after --speedup"},
	}
}

// rowFlags are the flags of pacing that do not set the load.
var rowFlags = words("start end spread-grid time-scale-think time-scale-tool max-think")

// selectedRows returns the pacing of rowFlags.
func selectedRows(c *cli.Context) trace.Pacing {
	return trace.Pacing{
		Start: c.Duration("start"), End: c.Duration("end"), SpreadGrid: c.Bool("spread-grid"), Seed: c.Uint64("seed"),
		ThinkScale: given(c, "time-scale-think"), ToolScale: given(c, "time-scale-tool"), MaxThink: c.Duration("max-think"),
	}
}

func pacingOf(c *cli.Context) (trace.Pacing, error) {
	p := selectedRows(c)
	p.Limit, p.Speedup, p.Ramp = c.Int("limit"), c.Float64("speedup"), c.Duration("ramp")
	rate, ofSessions := "rate", c.IsSet("session-rate")
	if ofSessions {
		rate = "session-rate"
	}
	switch {
	case ofSessions && c.IsSet("rate"):
		return p, misused("%s: --rate and --session-rate exclude each other: arrivals are of requests or of sessions", c.Command.Name)
	case c.IsSet(rate):
		p.Arrivals = &trace.Arrivals{Process: c.String("arrival"), Rate: c.Float64(rate), Burstiness: c.Float64("burstiness"), Sessions: ofSessions, Seed: p.Seed}
	case c.IsSet("arrival") || c.IsSet("burstiness"):
		return p, misused("%s: --arrival and --burstiness need --rate or --session-rate", c.Command.Name)
	}
	if err := p.Check(); err != nil {
		return p, misused("%s: %w", c.Command.Name, err)
	}
	return p, nil
}
