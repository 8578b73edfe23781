package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bytedance/sonic"
	"github.com/urfave/cli/v2"

	"moontide/analyze/fidelity"
	"moontide/analyze/report"
	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/log"
)

// Flags of a fidelity check.
const (
	checkFlagName = "check"
	againstFlag   = "against"
)

func checkFlags() []cli.Flag {
	return append(group(ofCheck,
		&cli.BoolFlag{Name: checkFlagName, Usage: "compare the generated trace with its source: PASS, or FAIL with exit status 4"},
		&cli.StringFlag{Name: againstFlag, Usage: "`TRACE` to compare with; with --only, its requests of that client", DefaultText: "--from"},
	), group(inOutput,
		&cli.BoolFlag{Name: "json", Usage: "print the result of --check as JSON instead of a table"},
		&cli.StringFlag{Name: "html", Usage: "also write the result of --check to `FILE`, a self-contained page"},
	)...)
}

// fidelityCheck is a fidelity check, as configured by flags.
type fidelityCheck struct {
	source string
	client string // the only one of the source that is compared, "" for all
	outputs
}

// checkOf parses the flags of a check, and returns nil without one.
func checkOf(c *cli.Context) (*fidelityCheck, error) {
	if !c.Bool(checkFlagName) {
		if name := firstGivenOf(c, againstFlag, "json", "html"); name != "" {
			return nil, misused("synth: --%s needs --check", name)
		}
		return nil, nil
	}
	check := &fidelityCheck{source: c.String("from"), client: c.String("only")}
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
	var err error
	check.outputs, err = outputsOf(c)
	return check, err
}

// isModel reports whether a file is a model of a trace.
func isModel(path string) bool {
	in, closeInput, err := openInput(streams{}, path)
	if err != nil {
		return false
	}
	defer closeInput()
	return startsModel(in)
}

// run judges the trace in a file.
func (f *fidelityCheck) run(c *cli.Context, std streams, file string) error {
	drawn, err := f.collect(c, file, format.Options{}, func(reqs trace.Requests) trace.Requests { return reqs })
	if err != nil {
		return err
	}
	rateScale := c.Float64("rate-scale")
	source, err := f.collect(c, f.source, formatOptions(c), func(reqs trace.Requests) trace.Requests {
		reqs = trace.Take(reqs, max(1, int(float64(drawn.Requests)/rateScale)))
		return trace.Speed(reqs, c.Float64("speedup-ratio"))
	})
	if err != nil {
		return err
	}
	result := report.Fidelity{SourceName: traceName(f.source), DrawnName: traceName(file), Report: fidelity.Compare(source, drawn, rateScale), RateScale: rateScale}
	err = f.show(std, resultsOf(result))
	if err != nil || result.Pass() {
		return err
	}
	return gateError{errors.New("the drawn trace does not resemble its source: FAIL")}
}

// collect collects the compared values of a part of a trace.
func (f *fidelityCheck) collect(c *cli.Context, path string, opts format.Options, part func(trace.Requests) trace.Requests) (*fidelity.Trace, error) {
	r, err := format.Open(path, opts)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	reqs := r.Borrowed()
	if path == f.source && f.client != "" {
		reqs = trace.Prune(r.Requests(), func(reqs trace.Requests) trace.Requests { return ofClient(reqs, f.client) }, new(int))
	}
	t, err := fidelity.Collect(collectOften(trace.Until(c.Context, part(reqs))), cmp.Or(c.Int(blockSizeFlag.Name), r.BlockSize()))
	if err != nil {
		return nil, located(err, path, r)
	}
	return t, nil
}

// ofClient returns the requests with all values of a client's name among their extra keys.
func ofClient(reqs trace.Requests, name string) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		for r, err := range reqs {
			if err == nil && !hasValues(r, strings.Split(name, "/")) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func hasValues(r trace.Request, values []string) bool {
	var keys map[string]any
	if sonic.Unmarshal(r.Extra, &keys) != nil {
		return false
	}
	if recorded, ok := keys[log.RecordedKey].(map[string]any); ok {
		maps.Copy(keys, recorded)
	}
	for _, v := range values {
		if !slices.ContainsFunc(slices.Collect(maps.Values(keys)), func(of any) bool { return fmt.Sprint(of) == v }) {
			return false
		}
	}
	return true
}
