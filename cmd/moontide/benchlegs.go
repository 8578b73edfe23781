package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
	"moontide/synth/spec"
)

// legDescription returns the description of the requests of a run, the same as that of
// moontide synth with these flags.
func legDescription(c *cli.Context, std streams, leg experiment.Leg) (*spec.Spec, error) {
	own := map[string]string{rateFlag: "", durationFlag.Name: "", "num-requests": strconv.Itoa(leg.Prompts)}
	if leg.Axis == experiment.Rate && !math.IsInf(leg.Level, 1) {
		own[rateFlag] = experiment.FormatLevel(leg.Level)
	}
	if leg.Shape != (experiment.Shape{}) {
		own["isl"], own["osl"] = strconv.Itoa(leg.Shape.ISL), strconv.Itoa(leg.Shape.OSL)
	}
	if leg.Draw > 0 {
		own["seed"] = strconv.FormatUint(c.Uint64("seed")+uint64(leg.Draw), 10)
	}
	return readDescription(c, std, own)
}

func sayLeg(std streams, r experiment.LegResult) {
	if r.Metrics.Completed+r.Metrics.Failed == 0 {
		return
	}
	std.say("%s", report.RunLine(r.Metrics))
	if r.Metrics.Cache.Prediction.Causes[measure.Warm].Requests > 0 {
		std.say("the server's cache has prompts of an earlier run; use another --salt and --out")
	}
}

// show shows the runs. As text, it shows a single run as replay does, too.
func (q *benchQuestion) show(std streams, set report.Set) error {
	set.HeldOut = heldOutErrors(q.sweep.Run.EngineFile, set.Metrics)
	shown := resultsOf(set)
	if !q.find && len(q.sweep.Legs()) == 1 {
		shown.forms["text"] = func(w io.Writer) error {
			if err := terminalOf(w).Write(w, set.Runs().Document()); err != nil {
				return err
			}
			io.WriteString(w, "\n")
			return terminalOf(w).Write(w, set.Document())
		}
	}
	return q.outputs.show(std, shown)
}

// setOutcome returns an error if runs are INVALID, or do not meet the gates.
func setOutcome(set report.Set) error {
	if set.Invalid() {
		return errInvalid
	}
	var failed []error
	for _, text := range set.Unmet() {
		failed = append(failed, gateError{fmt.Errorf("failed: %s", text)})
	}
	return errors.Join(failed...)
}

func sweepSubject(c *cli.Context, target runfile.Target) string {
	var words []string
	if c.NArg() > 0 {
		words = append(words, traceName(c.Args().First()))
	}
	for _, f := range describeFlags() {
		name := f.Names()[0]
		if name == rateFlag || name == durationFlag.Name || !c.IsSet(name) {
			continue
		}
		label := name
		if name == "isl" || name == "osl" {
			label = strings.ToUpper(name)
		}
		words = append(words, label+" "+c.String(name))
	}
	model := "model " + target.Model
	switch {
	case target.Virtual:
		model = "simulated in virtual time"
	case target.Simulated:
		model += " on the embedded simulated endpoint"
	}
	return strings.Join(append(words, model), ", ")
}
