package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/trace"
)

// pacingFlags say which rows of a trace there are, and when: of every verb
// that replays or converts one.
func pacingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "start", Category: inLoad, Usage: "drop the rows before `TIME` of the trace, which becomes 0"},
		&cli.DurationFlag{Name: "end", Category: inLoad, Usage: "drop the rows from `TIME` of the trace on", DefaultText: "the trace's end"},
		&cli.IntFlag{Name: "limit", Category: inLoad, Aliases: []string{"take", "num-prompts"}, Usage: "use the first `N` rows; a shorter trace is not repeated", DefaultText: "all"},
		&cli.BoolFlag{Name: "spread-grid", Category: inLoad, DisableDefaultText: true, Usage: "spread requests that share a coarse timestamp over that step of the trace's clock"},
		&cli.Float64Flag{Name: "rate", Category: inLoad, Usage: "replace the arrivals: `R` requests per second", DefaultText: "the trace's arrivals"},
		&cli.StringFlag{Name: "arrival", Category: inLoad, Value: trace.Poisson, Usage: "arrival `PROCESS` for --rate: constant, poisson or gamma"},
		&cli.Float64Flag{Name: "burstiness", Category: inLoad, Value: 1, Usage: "shape `K` of gamma arrivals: below 1 they come in bursts"},
		&cli.Float64Flag{Name: "speedup", Category: inLoad, Aliases: []string{"speed"}, Value: 1, Usage: "divide all times by `X`"},
		&cli.DurationFlag{Name: "ramp", Category: inLoad, Usage: "ramp the rate up linearly from 0 over `TIME`, after --speedup"},
	}
}

// pacing is what these flags make of a trace. Its methods are transforms, to be
// applied in their order.
type pacing struct {
	start, end float64 // ms
	limit      int     // 0 is all
	spread     bool
	grid       *trace.Grid     // to be spread, once it was found
	arrivals   *trace.Arrivals // nil keeps the trace's own
	closed     bool
	rebase     bool // the first arrival becomes 0
	speed      float64
	ramp       float64 // ms; 0 is none
	seed       uint64
}

func pacingOf(c *cli.Context) (pacing, error) {
	verb := c.Command.Name
	p := pacing{
		start: milliseconds(c.Duration("start")), end: math.Inf(1),
		limit: c.Int("limit"), spread: c.Bool("spread-grid"), closed: c.Bool("closed"),
		speed: c.Float64("speedup"), ramp: milliseconds(c.Duration("ramp")), seed: c.Uint64("seed"),
	}
	if c.IsSet("end") {
		p.end = milliseconds(c.Duration("end"))
	}
	if c.IsSet("rate") {
		p.arrivals = &trace.Arrivals{Law: c.String("arrival"), Rate: c.Float64("rate"), Burstiness: c.Float64("burstiness"), Seed: p.seed}
		if err := p.arrivals.Check(); err != nil {
			return p, misused("%s: %v", verb, err)
		}
	}
	switch {
	case p.start < 0 || p.end <= p.start:
		return p, misused("%s: the window from --start %v to --end %v is empty", verb, c.Duration("start"), c.Duration("end"))
	case c.IsSet("limit") && p.limit < 1:
		return p, misused("%s: --limit is not a positive number: %d", verb, p.limit)
	case !(p.speed > 0) || math.IsInf(p.speed, 0):
		return p, misused("%s: --speedup is not a positive number: %v", verb, p.speed)
	case c.IsSet("ramp") && p.ramp <= 0:
		return p, misused("%s: --ramp is not a positive time: %v", verb, c.Duration("ramp"))
	case p.arrivals == nil && (c.IsSet("arrival") || c.IsSet("burstiness")):
		return p, misused("%s: --arrival and --burstiness go with --rate", verb)
	case p.arrivals != nil && p.spread:
		return p, misused("%s: --rate gives rows new arrivals: there is nothing for --spread-grid to spread", verb)
	}
	if !p.closed {
		return p, nil
	}
	for _, flag := range []string{"rate", "spread-grid", "ramp"} {
		if c.IsSet(flag) {
			return p, misused("%s: --closed sends rows as there is room for them: --%s is about arrivals", verb, flag)
		}
	}
	if !c.IsSet(maxConcurrencyFlag.Name) {
		return p, misused("%s: --closed needs --max-concurrency", verb)
	}
	return p, nil
}

// cut leaves what is replayed of the trace, by its own clock.
func (p pacing) cut(reqs trace.Requests) trace.Requests {
	if p.grid != nil {
		reqs = trace.Spread(reqs, *p.grid, p.seed)
	}
	if p.start > 0 || !math.IsInf(p.end, 1) {
		reqs = trace.Window(reqs, p.start, p.end)
	}
	return reqs
}

// pace takes the first rows of what is left and moves them.
func (p pacing) pace(reqs trace.Requests) trace.Requests {
	if p.limit > 0 {
		reqs = trace.Take(reqs, p.limit)
	}
	switch {
	case p.closed:
		reqs = trace.AtOnce(reqs)
	case p.arrivals != nil:
		reqs = trace.Retime(reqs, *p.arrivals)
	case p.rebase:
		reqs = trace.Rebase(reqs)
	}
	if p.speed != 1 {
		reqs = trace.Speed(reqs, p.speed)
	}
	if p.ramp > 0 {
		reqs = trace.Ramp(reqs, p.ramp)
	}
	return reqs
}

// findGrid finds the grid that is to be spread in a trace that will be read
// once more.
func (p *pacing) findGrid(ctx context.Context, rows trace.Requests) error {
	var d trace.GridDetector
	for r, err := range until(ctx, rows) {
		if err != nil {
			return err
		}
		d.Add(r)
	}
	if g, _, ok := d.Grid(); ok {
		p.grid = &g
	}
	return nil
}

// burst is how many requests of a time grid come at once, on average, from
// which on a replay says so.
const burst = 2

// gridNote says what is made of the grid that arrivals lie on, as the trace's
// own clock shows it; "" where there is nothing to say.
func (p pacing) gridNote(d *trace.GridDetector) string {
	g, together, ok := d.Grid()
	step := time.Duration(g.Step * float64(time.Millisecond)).Round(time.Millisecond)
	switch {
	case p.spread && !ok:
		return "the arrivals lie on no grid: --spread-grid spreads nothing"
	case p.spread:
		return fmt.Sprintf("arrivals lie on a grid of %v and were spread over its steps", step)
	case !ok || p.closed || p.arrivals != nil || together < burst:
		return ""
	}
	return fmt.Sprintf("arrivals lie on a grid of %v and are replayed as bursts of %.1f on average; --spread-grid spreads them", step, together)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
