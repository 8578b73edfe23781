package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"moontide/cmd/moontide/clidoc"
	"moontide/replay/sim/engine"
	"moontide/trace/routing"
)

// engineSettings lists the flags of simulated engines, with vLLM's names, and
// the field that each sets: an int or a [time.Duration].
var engineSettings = []struct {
	name, usage, alias string
	field              func(*engine.Deployment) any
}{
	{"engines", "number of engines behind a router", "", func(d *engine.Deployment) any { return &d.Engines }},
	{"prefill-engines", "disaggregated: `N` engines for prefill, instead of --engines", "", func(d *engine.Deployment) any { return &d.Prefill }},
	{"decode-engines", "disaggregated: `N` engines for decode", "", func(d *engine.Deployment) any { return &d.Decode }},
	{"transfer-base", "disaggregated: base time of a KV transfer from prefill to decode", "", func(d *engine.Deployment) any { return &d.Transfer.Base }},
	{"transfer-per-token", "disaggregated: additional KV transfer time per prompt token", "", func(d *engine.Deployment) any { return &d.Transfer.PerToken }},
	{"max-num-seqs", "maximum number of sequences running at once on an engine", "", func(d *engine.Deployment) any { return &d.Engine.MaxSeqs }},
	{"max-num-batched-tokens", "maximum number of tokens computed in a step; longer prompts are chunked", "", func(d *engine.Deployment) any { return &d.Engine.MaxBatchedTokens }},
	{"num-gpu-blocks", "KV cache size of an engine, in blocks", "kv-blocks", func(d *engine.Deployment) any { return &d.Engine.KVBlocks }},
	{"engine-block-size", "KV cache block size in tokens", "kv-block-size", func(d *engine.Deployment) any { return &d.Engine.BlockSize }},
	{"max-model-len", "maximum number of prompt and output tokens of a request", "", func(d *engine.Deployment) any { return &d.Engine.MaxModelLen }},
	{"step-base", "base time of an engine step", "", func(d *engine.Deployment) any { return &d.Engine.Costs.Step }},
	{"prefill-per-token", "additional step time per prompt token computed", "", func(d *engine.Deployment) any { return &d.Engine.Costs.PrefillToken }},
	{"decode-per-sequence", "additional step time per decoding sequence", "", func(d *engine.Deployment) any { return &d.Engine.Costs.Sequence }},
	{"decode-per-context-token", "additional step time per token of the decoding sequences' contexts", "", func(d *engine.Deployment) any { return &d.Engine.Costs.ContextToken }},
	{"phased-tpot", "for calibration: a token per sequence every `TIME`, each sequence at its own phase", "", func(d *engine.Deployment) any { return &d.Engine.PhasedTPOT }},
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
	for _, s := range engineSettings {
		switch value := s.field(&simulated).(type) {
		case *int:
			flags = append(flags, &cli.IntFlag{Name: s.name, Aliases: words(s.alias), Value: *value, Usage: s.usage})
		case *time.Duration:
			flags = append(flags, &cli.DurationFlag{Name: s.name, Value: *value, Usage: s.usage})
		}
	}
	return group(inEngine, flags...)
}

func deploymentOf(c *cli.Context) (d engine.Deployment, err error) {
	for _, s := range engineSettings {
		switch field := s.field(&d).(type) {
		case *int:
			*field = c.Int(s.name)
		case *time.Duration:
			*field = c.Duration(s.name)
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
