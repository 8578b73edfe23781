package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
	"moontide/trace/routing"
)

// engineAliases are other names of flags of simulated engines.
var engineAliases = map[string][]string{"num-gpu-blocks": {"kv-blocks"}, "engine-block-size": {"kv-block-size"}, routingFlag: {"router"}}

const (
	engineFlag  = "engine"
	routingFlag = "routing"
)

func engineFlags() []cli.Flag {
	flags := []cli.Flag{
		&cli.StringFlag{Name: engineFlag, Usage: "engine `FILE` written by moontide fit-engine; flags override it, for both prefill and decode engines", DefaultText: "about Llama 3.1 8B on one H100"},
		&cli.BoolFlag{Name: "cache-generated", Usage: "keep generated tokens in the prefix cache, as vLLM and SGLang do; prompts with live answers reuse them"},
	}
	for _, p := range engine.Parameters {
		flags = append(flags, parameterFlag(p))
	}
	return group(inEngine, flags...)
}

// parameterFlag returns the flag of a parameter.
func parameterFlag(p engine.Parameter) cli.Flag {
	d := engine.Default()
	switch value := p.Field(&d).(type) {
	case *int:
		return &cli.IntFlag{Name: p.Name, Aliases: engineAliases[p.Name], Value: *value, Usage: p.Usage}
	case *bool:
		return &cli.BoolFlag{Name: p.Name, Usage: p.Usage}
	case *time.Duration:
		return &cli.DurationFlag{Name: p.Name, Value: *value, Usage: p.Usage}
	case *engine.Cost:
		return &cli.StringFlag{Name: p.Name, Value: p.Text(&d), Usage: "`TIME`: " + p.Usage}
	case *engine.Sharing:
		return &choiceFlag{
			StringFlag: cli.StringFlag{Name: p.Name, Value: p.Text(&d), Usage: "`LAW`: " + p.Usage + ": %s"},
			Choices:    oneOf(engine.Sharings...),
		}
	case *routing.Policy:
		return &choiceFlag{
			StringFlag: cli.StringFlag{Name: p.Name, Aliases: engineAliases[p.Name], Value: string(*value), Usage: "`POLICY`: " + p.Usage + ": %s"},
			Choices:    oneOf(routing.Policies()...),
		}
	}
	return &cli.StringFlag{Name: p.Name, Value: p.Text(&d), Usage: p.Usage}
}

// deploymentOf returns the deployment that the flags describe, and the engine file, nil
// without --engine.
func deploymentOf(c *cli.Context) (d engine.Deployment, file *fit.File, err error) {
	if file, err = engineFileOf(c); err != nil {
		return d, nil, err
	}
	d, err = deploymentFrom(c, file, baseOf(file))
	return d, file, err
}

// engineFileOf reads the engine file, nil without --engine.
func engineFileOf(c *cli.Context) (*fit.File, error) {
	if !c.IsSet(engineFlag) {
		return nil, nil
	}
	return fit.ReadFile(c.String(engineFlag))
}

// baseOf returns the deployment that flags override.
func baseOf(file *fit.File) engine.Deployment {
	if file == nil {
		return engine.Default()
	}
	return file.Deployment.Clone()
}

// deploymentFrom returns base, from file unless that is nil, with the flags that are set.
func deploymentFrom(c *cli.Context, file *fit.File, base engine.Deployment) (engine.Deployment, error) {
	d, err := override(c, base, file)
	if err != nil {
		return d, err
	}
	d.Seed = c.Uint64("seed")
	switch {
	case (d.Prefill > 0) != (d.Decode > 0):
		return d, misused("%s: --prefill-engines and --decode-engines go together", c.Command.Name)
	case d.Disaggregated():
		d.Engines = 0
	}
	if err := d.Validate(); err != nil {
		return d, misused("%s: %w", c.Command.Name, err)
	}
	return d, nil
}

// override returns d with the flags that are set.
func override(c *cli.Context, d engine.Deployment, file *fit.File) (engine.Deployment, error) {
	if c.IsSet("engines") {
		switch {
		case c.IsSet("prefill-engines") || c.IsSet("decode-engines"):
			return d, misused("%s: --engines and --prefill-engines, --decode-engines exclude each other", c.Command.Name)
		case d.DecodeEngine != nil:
			return d, misused("%s: --engines: %s has prefill and decode engines of their own: use --prefill-engines and --decode-engines", c.Command.Name, file.Name)
		}
		d.Prefill, d.Decode = 0, 0
	}
	for _, p := range engine.Parameters {
		if !c.IsSet(p.Name) {
			continue
		}
		text := fmt.Sprint(c.Value(p.Name))
		if _, err := strconv.ParseFloat(text, 64); err == nil && isCost(p) {
			text += "s"
		}
		err := p.Set(&d, text)
		if p.OfEngine != nil && d.DecodeEngine != nil {
			of := engine.Deployment{Engine: *d.DecodeEngine}
			err = p.Set(&of, text)
			*d.DecodeEngine = of.Engine
		}
		if err != nil {
			return d, misused("%s: --%s: %w", c.Command.Name, p.Name, err)
		}
	}
	if d.Routing == "" {
		d.Routing = routing.Policy(c.String(routingFlag))
	}
	for _, e := range []*engine.Config{&d.Engine, d.DecodeEngine} {
		if e != nil && e.MaxSeqs == 0 && e.MaxBatchedTokens > 0 { // the default would exceed the limit of tokens
			e.MaxSeqs = min(engine.Default().Engine.MaxSeqs, e.MaxBatchedTokens)
		}
		switch {
		case e == nil || e.MaxBatchedTokens == 0 || e.MaxBatchedTokens >= e.MaxSeqs:
		case c.IsSet("max-num-batched-tokens"):
			return d, misused("%s: --max-num-batched-tokens %d is below --max-num-seqs %d: a step could not hold a token of each sequence",
				c.Command.Name, e.MaxBatchedTokens, e.MaxSeqs)
		default: // raised to the number of sequences
			e.MaxBatchedTokens = e.MaxSeqs
		}
	}
	return d, nil
}

// isCost reports whether a parameter is a time that may have fractions of nanoseconds.
func isCost(p engine.Parameter) bool {
	_, cost := p.Field(new(engine.Deployment)).(*engine.Cost)
	return cost
}
