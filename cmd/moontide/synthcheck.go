package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/fidelity"
	"moontide/analyze/report"
	"moontide/replay/bench"
	"moontide/trace"
	"moontide/trace/format"
)

// Flags of a fidelity check.
const (
	checkFlagName = "check"
	againstFlag   = "against"
	maxGapFlag    = "max-gap"
)

func checkFlags() []cli.Flag {
	return append(group(ofCheck,
		&cli.BoolFlag{Name: checkFlagName, Usage: "compare the generated trace with its source: PASS, or FAIL with exit status 4"},
		&cli.StringFlag{Name: againstFlag, Usage: "`TRACE` to compare with", DefaultText: "--from, unless that is a model; required with --only"},
		repeatable(cli.GenericFlag{Name: maxGapFlag, Usage: "`LIMITS`: comma-separated bounds for --check: 2x doubles all, isl_mean=5% sets one, lru=4% sets those of all lru_ aspects; " +
			"twice the noise floor always passes; repeatable"}),
	), group(inOutput,
		&cli.StringFlag{Name: "json", Usage: "write the result of --check as JSON to `FILE`; - is standard output, instead of the table"},
		&cli.StringFlag{Name: "html", Usage: "also write the result of --check to `FILE`, a self-contained page"},
		&cli.StringFlag{Name: "png", Usage: "also plot the gaps of --check with noise floors and bounds to `FILE`"},
	)...)
}

// fidelityCheck is a check as the flags describe it.
type fidelityCheck struct {
	source string
	limits fidelity.Limits
	output
}

// checkOf parses the flags of a check, and returns nil without one.
func checkOf(c *cli.Context) (*fidelityCheck, error) {
	if !c.Bool(checkFlagName) {
		if name := firstGivenOf(c, againstFlag, maxGapFlag, "json", "html", "png"); name != "" {
			return nil, misused("synth: --%s needs --check", name)
		}
		return nil, nil
	}
	check := &fidelityCheck{source: c.String("from")}
	if c.IsSet(againstFlag) {
		check.source = c.String(againstFlag)
	}
	switch check.source {
	case "":
		return nil, misused("synth: --check needs --against TRACE to compare a described trace with")
	case "-":
		return nil, misused("synth: --check reads the source twice: use a file instead of standard input")
	}
	if !c.IsSet(againstFlag) && isModel(check.source) {
		return nil, misused("synth: %s is a model: --check needs --against TRACE", traceName(check.source))
	}
	if !c.IsSet(againstFlag) && c.IsSet("only") {
		return nil, misused("synth: --only draws one client: --check needs --against TRACE with the requests of that client")
	}
	var err error
	if texts := textsOf(c, maxGapFlag); len(texts) > 0 {
		if check.limits, err = fidelity.ParseLimits(strings.Join(texts, ",")); err != nil {
			return nil, misused("synth: --max-gap: %w", err)
		}
	}
	check.files, err = filesOf(c, "", "json", "html", "png")
	return check, err
}

// isModel reports whether a file is a learned model.
func isModel(path string) bool {
	in, closeInput, err := openInput(streams{}, path)
	if err != nil {
		return false
	}
	defer closeInput()
	return startsModel(in)
}

// run judges the trace in a file, which is named name in the report. to is where the
// table goes.
func (f *fidelityCheck) run(c *cli.Context, std streams, file, name string, to io.Writer) error {
	drawn, err := f.collect(c, file, format.Options{}, fidelity.Options{BlockSize: c.Int(blockSizeFlag.Name)})
	if err != nil {
		return err
	}
	opts := formatOptions(c)
	source, err := f.collect(c, f.source, opts, fidelity.Options{BlockSize: c.Int(blockSizeFlag.Name), Limit: drawn.Requests()})
	if err != nil {
		return err
	}
	engine, err := f.simulate(c, source, drawn, opts, file)
	if err != nil {
		return err
	}
	result := report.Fidelity{SourceName: traceName(f.source), DrawnName: name, Report: fidelity.Compare(source, drawn, f.limits), Engine: engine, Remarks: scaledRemarks(c)}
	shown := resultsOf(result)
	shown.files["json"] = result.JSON
	printed, err := f.write(std, shown)
	if err == nil && !printed {
		err = terminalOf(to).Write(to, result.Document())
	}
	if err != nil || result.Pass() {
		return err
	}
	return gateError{errors.New("the drawn trace does not resemble its source: FAIL")}
}

// scaledRemarks names the flags that draw other arrivals than the source's, which fail a
// check.
func scaledRemarks(c *cli.Context) (remarks []string) {
	for _, name := range []string{"rate-scale", "speedup-ratio"} {
		if x := c.Float64(name); x != 1 {
			remarks = append(remarks, fmt.Sprintf("--%s %v was given, but the limits are those of the source's own rate: rates, gaps, peaks and what depends on them are meant to differ", name, x))
		}
	}
	return remarks
}

func (f *fidelityCheck) collect(c *cli.Context, path string, opts format.Options, of fidelity.Options) (*fidelity.Trace, error) {
	r, err := format.Open(path, opts)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if of.BlockSize == 0 {
		of.BlockSize = r.BlockSize()
	}
	t, err := fidelity.Collect(collectOften(trace.Until(c.Context, r.Borrowed())), of)
	if err != nil {
		return nil, located(err, path, r)
	}
	return t, nil
}

// simulate sets the TTFTs of both traces on the same engine.
func (f *fidelityCheck) simulate(c *cli.Context, source, drawn *fidelity.Trace, opts format.Options, file string) (engine report.FidelityEngine, err error) {
	planner := func(path string, opts format.Options, limit int) (*bench.Planner, error) {
		cfg := bench.Config{Trace: bench.Trace{Path: path, Format: opts, BlockSize: c.Int(blockSizeFlag.Name)}}
		cfg.Pacing.Limit = limit
		return bench.NewPlanner(c.Context, bench.PlanConfig{Run: cfg, Parallel: 1})
	}
	p, err := planner(f.source, opts, drawn.Requests())
	if err != nil {
		return engine, fmt.Errorf("simulating the source: %w", err)
	}
	engines, speed, err := p.HalfBusy(c.Context)
	if err != nil {
		return engine, err
	}
	engine.Speed = speed
	if source.TTFT, engine.SourceBusy, err = p.TTFTs(c.Context, engines); err != nil {
		return engine, err
	}
	if p, err = planner(file, format.Options{}, 0); err != nil {
		return engine, fmt.Errorf("simulating the drawn trace: %w", err)
	}
	drawn.TTFT, engine.DrawnBusy, err = p.TTFTs(c.Context, engines)
	return engine, err
}

// copied returns streams whose output also goes to a temporary file, for a check of a
// trace that is written to standard output.
func copied(std streams) (streams, *os.File, error) {
	f, err := os.CreateTemp("", "moontide-*.jsonl")
	if err != nil {
		return std, nil, fmt.Errorf("copying standard output: %w", err)
	}
	std.out = io.MultiWriter(std.out, f)
	return std, f, nil
}
