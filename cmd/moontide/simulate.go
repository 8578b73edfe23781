package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"moontide/replay/experiment"
)

func simulateCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Usage: "replay a trace against simulated engines in virtual time (an hour takes about a second)",
		Description: "The engines are those of moontide serve; the defaults approximate Llama 3.1 8B in FP8 on one H100. The " +
			"run folder has the same files as that of a replay, so all reports work on it.\n\n" +
			"Engine flags for whole numbers accept lists and ranges, such as 1,2,4 or 1..16 or 4..16..4, and --routing " +
			"accepts a list of policies. All combinations are simulated in memory and compared in a table, which names the " +
			"smallest deployment that meets --slo; --engines can be combined with --prefill-engines and --decode-engines. " +
			"With a fitted --engine FILE, answers carry the error of its predictions on held-out measurements. The exit " +
			"status is 4 if no deployment meets the conditions. bench --virtual sweeps loads and searches for the highest.\n\n" +
			gateHelp,
		Flags: append(slices.Concat(recordedTraceFlags(), runFlags(), listedEngineFlags(), runOutputFlags()),
			&cli.Uint64Flag{Name: "seed", Category: inLoad, Usage: "random seed for generated arrivals and random routing"},
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
	if len(choicesOf(c)) > 1 {
		return planTrace(c, std, stop, path)
	}
	cfg, err := virtualConfig(c, std, stop)
	if err != nil {
		return err
	}
	if text := experiment.HeldOutErrors(cfg.EngineFile); text != "" {
		std.say("%s", text)
	}
	return runTrace(c, std, stop, path, cfg)
}

// virtualConfig parses the flags of a run in virtual time.
func virtualConfig(c *cli.Context, std streams, stop stop) (cfg experiment.Config, err error) {
	cfg = virtualRunConfig(c, std, stop)
	cfg.Engines, cfg.EngineFile, err = deploymentOf(c)
	return cfg, err
}

// virtualRunConfig is virtualConfig without the engines.
func virtualRunConfig(c *cli.Context, std streams, stop stop) (cfg experiment.Config) {
	cfg = runConfig(c, std, stop)
	cfg.Virtual = true
	setAnswers(c, &cfg.Client)
	return cfg
}
