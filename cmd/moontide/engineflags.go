package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/replay/sim/engine"
	"moontide/trace/routing"
)

// Flags of simulated engines, with vLLM's names.
const (
	enginesFlag        = "engines"
	routingFlag        = "routing"
	prefillEnginesFlag = "prefill-engines"
	decodeEnginesFlag  = "decode-engines"
	transferBaseFlag   = "transfer-base"
	transferTokenFlag  = "transfer-per-token"
	maxSeqsFlag        = "max-num-seqs"
	maxBatchedFlag     = "max-num-batched-tokens"
	engineBlockFlag    = "engine-block-size"
	kvBlocksFlag       = "num-gpu-blocks"
	maxModelLenFlag    = "max-model-len"
	stepBaseFlag       = "step-base"
	prefillTokenFlag   = "prefill-per-token"
	sequenceFlag       = "decode-per-sequence"
	contextTokenFlag   = "decode-per-context-token"
	phasedFlag         = "phased-tpot"
	cacheGeneratedFlag = "cache-generated"
)

// engineFlags returns the flags of a simulated deployment.
func engineFlags() []cli.Flag {
	simulated := engine.Default()
	count := func(name string, value int, usage string, aliases ...string) cli.Flag {
		return &cli.IntFlag{Name: name, Category: inEngine, Value: value, Usage: usage, Aliases: aliases}
	}
	cost := func(name string, value time.Duration, usage string) cli.Flag {
		return &cli.DurationFlag{Name: name, Category: inEngine, Value: value, Usage: usage}
	}
	var policies []string
	for _, p := range routing.Policies() {
		policies = append(policies, string(p))
	}
	return []cli.Flag{
		count(enginesFlag, 1, "number of engines behind a router"),
		&cli.StringFlag{Name: routingFlag, Aliases: []string{"router"}, Category: inEngine, Value: string(routing.RoundRobin), Usage: "`POLICY`: routing policy: " + strings.Join(policies, ", ")},
		count(prefillEnginesFlag, 0, "disaggregated: `N` engines for prefill, instead of --"+enginesFlag),
		count(decodeEnginesFlag, 0, "disaggregated: `N` engines for decode"),
		cost(transferBaseFlag, simulated.Transfer.Base, "disaggregated: base time of a KV transfer from prefill to decode"),
		cost(transferTokenFlag, simulated.Transfer.PerToken, "disaggregated: additional KV transfer time per prompt token"),
		count(maxSeqsFlag, simulated.Engine.MaxSeqs, "maximum number of sequences running at once on an engine"),
		count(maxBatchedFlag, simulated.Engine.MaxBatchedTokens, "maximum number of tokens computed in a step; longer prompts are chunked"),
		count(kvBlocksFlag, simulated.Engine.KVBlocks, "KV cache size of an engine, in blocks", "kv-blocks"),
		count(engineBlockFlag, simulated.Engine.BlockSize, "KV cache block size in tokens", "kv-block-size"),
		count(maxModelLenFlag, simulated.Engine.MaxModelLen, "maximum number of prompt and output tokens of a request"),
		cost(stepBaseFlag, simulated.Engine.Costs.Step, "base time of an engine step"),
		cost(prefillTokenFlag, simulated.Engine.Costs.PrefillToken, "additional step time per prompt token computed"),
		cost(sequenceFlag, simulated.Engine.Costs.Sequence, "additional step time per decoding sequence"),
		cost(contextTokenFlag, simulated.Engine.Costs.ContextToken, "additional step time per token of the decoding sequences' contexts"),
		cost(phasedFlag, 0, "for calibration: a token per sequence every `TIME`, each sequence at its own phase"),
		&cli.BoolFlag{Name: cacheGeneratedFlag, Category: inEngine, Usage: "keep generated tokens in the prefix cache too"},
	}
}

// deploymentOf parses the flags of a simulated deployment.
func deploymentOf(c *cli.Context) (engine.Deployment, error) {
	var none engine.Deployment
	policy, err := routing.Parse(c.String(routingFlag))
	if err != nil {
		return none, misused("%s: --%s: %w", c.Command.Name, routingFlag, err)
	}
	d := engine.Deployment{
		Engine: engine.Config{
			Costs: engine.Costs{
				Step: c.Duration(stepBaseFlag), PrefillToken: c.Duration(prefillTokenFlag),
				Sequence: c.Duration(sequenceFlag), ContextToken: c.Duration(contextTokenFlag),
			},
			MaxSeqs: c.Int(maxSeqsFlag), MaxBatchedTokens: c.Int(maxBatchedFlag), BlockSize: c.Int(engineBlockFlag),
			KVBlocks: c.Int(kvBlocksFlag), MaxModelLen: c.Int(maxModelLenFlag), PhasedTPOT: c.Duration(phasedFlag),
		},
		Routing:  policy,
		Seed:     c.Uint64("seed"),
		Prefill:  c.Int(prefillEnginesFlag),
		Decode:   c.Int(decodeEnginesFlag),
		Transfer: engine.Transfer{Base: c.Duration(transferBaseFlag), PerToken: c.Duration(transferTokenFlag)},
	}
	if !c.IsSet(maxBatchedFlag) { // raised to the number of sequences if that is higher
		d.Engine.MaxBatchedTokens = max(d.Engine.MaxBatchedTokens, d.Engine.MaxSeqs)
	}
	switch {
	case d.Engine.MaxBatchedTokens < d.Engine.MaxSeqs:
		return none, misused("%s: --%s %d is below --%s %d: a step could not hold a token of each sequence",
			c.Command.Name, maxBatchedFlag, d.Engine.MaxBatchedTokens, maxSeqsFlag, d.Engine.MaxSeqs)
	case (d.Prefill > 0) != (d.Decode > 0):
		return none, misused("%s: --%s and --%s go together", c.Command.Name, prefillEnginesFlag, decodeEnginesFlag)
	case d.Disaggregated() && c.IsSet(enginesFlag):
		return none, misused("%s: --%s and --%s, --%s exclude each other", c.Command.Name, enginesFlag, prefillEnginesFlag, decodeEnginesFlag)
	case !d.Disaggregated():
		d.Engines = c.Int(enginesFlag)
	}
	if err := d.Validate(); err != nil {
		return none, misused("%s: %w", c.Command.Name, err)
	}
	return d, nil
}
