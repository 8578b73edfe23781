package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"moontide/replay/bench"
)

func simulateCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Name:  "simulate",
		Usage: "replay a trace against simulated engines in virtual time: an hour takes a second",
		Description: "The engines are those of moontide serve; the defaults approximate Llama 3.1 8B in FP8 on one\n" +
			"H100. The run folder has the same files as that of a replay, so every report works on it.\n\n" + gateHelp,
		Flags: append(slices.Concat(recordedTraceFlags(), runFlags(), engineFlags()),
			&cli.Uint64Flag{Name: "seed", Category: inLoad, Usage: "random seed for generated arrivals and the random router"},
			tokenizerFlag(inTraceInput),
		),
		Action: func(c *cli.Context) error { return simulateTrace(c, std, stop) },
	}
}

func simulateTrace(c *cli.Context, std streams, stop stop) error {
	path, err := one(c, "TRACE")
	if err != nil {
		return err
	}
	cfg, err := virtualConfig(c, std, stop)
	if err != nil {
		return err
	}
	return runTrace(c, std, stop, path, cfg)
}

// virtualConfig parses the flags of a run in virtual time.
func virtualConfig(c *cli.Context, std streams, stop stop) (cfg bench.Config, err error) {
	cfg = runConfig(c, std, stop)
	cfg.Virtual = true
	setAnswers(c, &cfg.Client)
	cfg.Engines, cfg.EngineFile, err = deploymentOf(c)
	return cfg, err
}
