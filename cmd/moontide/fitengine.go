package main

import (
	"errors"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/analyze/report/doc"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
)

// Flags of fit-engine only.
const (
	tableFlag   = "table"
	refitFlag   = "refit-prefill"
	longISLFlag = "long-isl"

	engineForm = "engine"
)

func fitEngineCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Usage: "fit simulated engines to measurements of a server",
		Description: "Measurements are run folders of replay or bench, a CSV file with --table, or those that --url makes: about a " +
			"dozen runs, which take minutes. To continue them, run the same command with the same --out.\n\n" +
			"Measure each load with a cold cache. INVALID runs, runs with a warm cache and inconsistent rows are listed " +
			"but not used. If too few are left, nothing is written.\n\n" +
			"The columns of a table are isl, osl, concurrency or rate (requests/s), metrics such as output_throughput and " +
			"mean_ttft_ms, and optionally prompts (the number of requests), mean_output_tokens and deployment.",
		Flags:  fitEngineFlags(),
		Action: func(c *cli.Context) error { return fitEngine(c, std, stop) },
	}
}

func fitEngineFlags() []cli.Flag {
	flags := group(inFit,
		&cli.StringFlag{Name: tableFlag, Usage: "CSV `FILE` of measurements"},
		&cli.BoolFlag{Name: refitFlag, Usage: "keep the costs of decoding of --engine and fit only those of prompts, transfers and requests: two measurements are enough, at a low and a high load"},
		&cli.StringFlag{Name: engineFlag, Usage: "engine `FILE` with the deployment and limits, and with --refit-prefill the costs of decoding"},
		&cli.Uint64Flag{Name: "seed", Usage: "random seed for the order of lengths and arrivals at a rate; with --url, also for prompts"},
	)
	for _, p := range engine.Parameters {
		if f := layoutFlag(p); f != nil {
			flags = append(flags, group(inEngine, f)...)
		}
	}
	return slices.Concat(flags, driveFlags(), outputFlags(oneOf(append(words("markdown csv html png"), engineForm)...).
		Noted(engineForm, "the engine file, for which -o FILE is short")))
}

// layoutFlag returns the flag of a setting that is not fitted, nil for the others.
func layoutFlag(p engine.Parameter) cli.Flag {
	switch f := parameterFlag(p).(type) {
	case *cli.IntFlag:
		f.Value = 0
		if p.Name == "max-num-seqs" || p.Name == "max-num-batched-tokens" {
			f.DefaultText = "that which fits best"
		}
		return f
	case *cli.BoolFlag:
		if p.OfEngine != nil {
			return f
		}
	}
	return nil
}

func fitEngine(c *cli.Context, std streams, stop stop) error {
	out, err := outputsOf(c)
	if err != nil {
		return err
	}
	options, err := fitOptions(c)
	if err != nil {
		return err
	}
	in, err := fitInput(c, std, stop)
	if err != nil {
		return err
	}
	if err := in.complete(&options); err != nil {
		return err
	}
	std.say("fitting %s", doc.Count(len(in.measurements), "measurement"))
	result, err := fit.Fit(stop.gently, in.measurements, options)
	var refused *fit.RefusedError
	if errors.As(err, &refused) {
		shown := report.EngineFit{Subject: in.subject, Refused: true, Result: &fit.Result{Rows: slices.Concat(refused.Rows, in.excluded)}}
		out = slices.DeleteFunc(out, func(o output) bool { return o.path != "" })
		return errors.Join(out.show(std, results{document: shown.Document}), err)
	}
	if err != nil {
		return in.explain(std, err)
	}
	result.Rows = append(result.Rows, in.excluded...)
	result.Fitted.Excluded += len(in.excluded)
	result.Fitted.Provenance = in.provenance
	return writeFit(std, out, report.EngineFit{Subject: in.subject, Result: result})
}

// writeFit writes the engine file and shows the report.
func writeFit(std streams, out outputs, shown report.EngineFit) error {
	engines := fit.File{Deployment: shown.Deployment, Fit: &shown.Fitted}
	std.say("%s", report.EngineFitLine(shown.Result))
	err := out.show(std, results{shown.Document, map[string]func(io.Writer) error{engineForm: engines.Write}})
	for _, o := range out {
		if err == nil && o.form == engineForm && o.path != "" {
			std.say("engine written to %s: use it with --engine", o.path)
		}
	}
	return err
}

// fitOptions parses the flags of the deployment and of the fit.
func fitOptions(c *cli.Context) (options fit.Options, err error) {
	options.Seed = c.Uint64("seed")
	var file *fit.File
	if c.IsSet(engineFlag) {
		if file, err = fit.ReadFile(c.String(engineFlag)); err != nil {
			return options, err
		}
		options.Template = file.Deployment
	}
	if options.Template, err = override(c, options.Template, file); err != nil {
		return options, err
	}
	if d := &options.Template; d.Disaggregated() {
		d.Engines = 0
	}
	if err := options.Template.Validate(); err != nil {
		return options, misused("%w", err)
	}
	options.Refit = c.Bool(refitFlag)
	if options.Refit && file == nil {
		return options, misused("--refit-prefill needs --engine: the file with the costs of decoding")
	}
	return options, nil
}
