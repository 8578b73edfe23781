package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"moontide/cmd/moontide/clidoc"
	"moontide/replay/sim/engine"
	"moontide/trace/routing"
)

// engineAliases are other names of flags of simulated engines.
var engineAliases = map[string][]string{"num-gpu-blocks": {"kv-blocks"}, "engine-block-size": {"kv-block-size"}}

// costFlag is a flag for a time, with fractions of nanoseconds.
func costFlag(name string, cost *engine.Cost, usage string) cli.Flag {
	return &cli.GenericFlag{Name: name, Value: costValue{cost}, Usage: "`TIME`: " + usage}
}

type costValue struct{ cost *engine.Cost }

func (v costValue) String() string {
	if v.cost == nil {
		return ""
	}
	return v.cost.String()
}

// Get is for run.json, which has the flags of a run.
func (v costValue) Get() any { return v.String() }

func (v costValue) Set(s string) (err error) {
	*v.cost, err = engine.ParseCost(s)
	return err
}

func engineFlags() []cli.Flag {
	flags := []cli.Flag{
		&clidoc.ChoiceFlag{
			StringFlag: cli.StringFlag{Name: "routing", Aliases: []string{"router"}, Value: string(routing.RoundRobin), Usage: "`POLICY`: routing policy: %s"},
			Choices:    clidoc.OneOf(routing.Policies()...),
		},
		&cli.BoolFlag{Name: "cache-generated", Usage: "keep generated tokens in the prefix cache, as vLLM and SGLang do; prompts with live answers reuse them"},
	}
	simulated := engine.Default()
	for _, p := range engine.Parameters {
		switch value := p.Field(&simulated).(type) {
		case *int:
			flags = append(flags, &cli.IntFlag{Name: p.Name, Aliases: engineAliases[p.Name], Value: *value, Usage: p.Usage})
		case *time.Duration:
			flags = append(flags, &cli.DurationFlag{Name: p.Name, Value: *value, Usage: p.Usage})
		case *engine.Cost:
			flags = append(flags, costFlag(p.Name, value, p.Usage))
		}
	}
	return group(inEngine, flags...)
}

func deploymentOf(c *cli.Context) (d engine.Deployment, err error) {
	for _, p := range engine.Parameters {
		switch field := p.Field(&d).(type) {
		case *int:
			*field = c.Int(p.Name)
		case *time.Duration:
			*field = c.Duration(p.Name)
		case *engine.Cost:
			*field = *c.Generic(p.Name).(costValue).cost
		}
	}
	d.Seed = c.Uint64("seed")
	d.Routing = routing.Policy(c.String("routing"))
	if !c.IsSet("max-num-batched-tokens") { // raised to the number of sequences if that is higher
		d.Engine.MaxBatchedTokens = max(d.Engine.MaxBatchedTokens, d.Engine.MaxSeqs)
	}
	switch {
	case d.Engine.MaxBatchedTokens < d.Engine.MaxSeqs:
		return d, misused("%s: --max-num-batched-tokens %d is below --max-num-seqs %d: a step could not hold a token of each sequence",
			c.Command.Name, d.Engine.MaxBatchedTokens, d.Engine.MaxSeqs)
	case (d.Prefill > 0) != (d.Decode > 0):
		return d, misused("%s: --prefill-engines and --decode-engines go together", c.Command.Name)
	case d.Disaggregated() && c.IsSet("engines"):
		return d, misused("%s: --engines and --prefill-engines, --decode-engines exclude each other", c.Command.Name)
	case d.Disaggregated():
		d.Engines = 0
	}
	if err := d.Validate(); err != nil {
		return d, misused("%s: %w", c.Command.Name, err)
	}
	return d, nil
}
