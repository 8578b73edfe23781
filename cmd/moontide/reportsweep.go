package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
)

// ofSweeps reports whether the folders are those of sweeps, all or none.
func (q *reportQuestion) ofSweeps(c *cli.Context) (bool, error) {
	sweeps := 0
	for _, r := range q.runs {
		if experiment.IsSweep(r.path) {
			sweeps++
		}
	}
	switch {
	case sweeps == 0:
		return false, nil
	case sweeps < len(q.runs):
		return true, misused("name either runs or sweeps: the runs of a sweep are the folders in it")
	case q.objectives != nil || c.IsSet("metrics"):
		return true, misused("--goodput and --metrics are for runs: name those in the sweep's folder")
	}
	if flag, ok := q.has(vllmForm, dynamoForm, morehForm, aiperfForm, missesForm, overTimeForm); ok {
		return true, misused("%s shows runs: name those in the sweep's folder", flag)
	}
	return true, nil
}

// reportSweeps shows sweeps side by side, each as one or more deployments.
func reportSweeps(c *cli.Context, std streams, q *reportQuestion) error {
	var legs []experiment.LegResult
	var incomplete []string
	for _, sweep := range q.runs {
		measured, unended, err := experiment.MeasureSweep(experiment.MeasureConfig{Change: changeOf(c)}, sweep.path)
		if err != nil {
			return err
		}
		for _, dir := range unended {
			what := "the run in " + dir + " did not end, or no request succeeded"
			if dir == sweep.path {
				what = "the sweep in " + dir + " did not end"
			}
			incomplete = append(incomplete, what+": repeat its command")
		}
		for _, leg := range measured {
			if len(q.runs) > 1 {
				leg.Target.Label = strings.TrimSpace(sweep.name + " " + leg.Target.Label)
			}
			if len(legs) > 0 && leg.Axis != legs[0].Axis {
				return fmt.Errorf("%s varies the %s, and %s the %s: only sweeps over the same quantity can be compared",
					q.runs[0].name, legs[0].Axis, sweep.name, leg.Axis)
			}
			sayDamaged(std, leg.Damaged)
			legs = append(legs, leg)
		}
	}
	set := report.SweepOf(subjectOf(legs), legs, q.view)
	set.Incomplete = incomplete
	if err := q.outputs.show(std, resultsOf(set)); err != nil {
		return err
	}
	if len(incomplete) > 0 {
		return errors.New(strings.Join(incomplete, "\n"))
	}
	return setOutcome(set)
}

// subjectOf names the trace and the model of the runs of sweeps, if they agree.
func subjectOf(legs []experiment.LegResult) string {
	model, trace := legs[0].Run.Target.ModelText(), filepath.Base(legs[0].Run.Trace.Name)
	for _, leg := range legs {
		if leg.Run.Target.ModelText() != model {
			model = "several models"
		}
		if filepath.Base(leg.Run.Trace.Name) != trace {
			trace = ""
		}
	}
	if legs[0].Run.Target.Virtual {
		model = "simulated in virtual time"
	} else {
		model = "model " + model
	}
	if trace == "" {
		return model
	}
	return trace + ", " + model
}

// changeOf returns the changes that the flags make to a run.
func changeOf(c *cli.Context) func(info *runfile.Run) {
	return func(info *runfile.Run) {
		info.Window, info.Thresholds = windowOf(c, info.Window), thresholdsOf(c, info.Thresholds)
		if n := c.Int(serverBlockSizeFlag.Name); n > 0 {
			info.Target.ServerBlockSize = n
		}
	}
}
