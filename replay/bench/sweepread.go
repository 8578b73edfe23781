package bench

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"moontide/replay/runfile"
)

// IsSweep reports whether a folder is that of a sweep.
func IsSweep(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, SweepFile))
	return err == nil
}

// MeasureSweep measures the complete runs in the folder of a sweep, in the order of
// their shapes and levels, and those of one level in that of their start. Of several attempts at a run it takes the last, unless that is
// INVALID and an earlier one is not.
func MeasureSweep(cfg MeasureConfig, dir string) ([]LegResult, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the sweep's folder: %w", err)
	}
	type found struct {
		LegResult
		invalid bool
		started int64
	}
	var all []found
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, has, err := ended(path)
		if err != nil {
			return nil, err
		}
		if !has.whole() || info.Leg == (runfile.Leg{}) {
			continue
		}
		leg, err := legOf(info.Leg)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(path, runfile.RunFile), err)
		}
		leg.Name = e.Name()
		f := found{LegResult{Leg: leg, Result: &Result{Dir: path}, Found: true}, has.invalid(), info.Started.UnixNano()}
		i := slices.IndexFunc(all, func(o found) bool { return o.same(leg) })
		switch {
		case i < 0:
			all = append(all, f)
		case all[i].invalid == f.invalid && f.started > all[i].started || all[i].invalid && !f.invalid:
			all[i] = f
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s is the folder of a sweep without a complete run", dir)
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.Shape.ISL, b.Shape.ISL), cmp.Compare(a.Shape.OSL, b.Shape.OSL), cmp.Compare(a.Level, b.Level), cmp.Compare(a.started, b.started))
	})
	var results []LegResult
	for _, f := range all {
		if f.Result, err = Measure(cfg, f.Dir); err != nil {
			return nil, err
		}
		f.Metrics.Detail = nil
		results = append(results, f.LegResult)
	}
	return results, nil
}

// legOf returns a leg from run.json, without its name.
func legOf(r runfile.Leg) (l Leg, err error) {
	l = Leg{Target: Target{Label: r.Deployment}, Axis: Axis(r.Axis), Repeat: r.Repeat}
	if !slices.Contains([]Axis{Concurrency, Rate, Speedup}, l.Axis) {
		return l, fmt.Errorf("unknown axis %q of a sweep", r.Axis)
	}
	if l.Level, err = strconv.ParseFloat(r.Level, 64); err != nil || math.IsNaN(l.Level) {
		return l, fmt.Errorf("%q is not a level of a sweep", r.Level)
	}
	if r.Shape != "" {
		shapes, err := ParseShapes(r.Shape)
		if err != nil {
			return l, err
		}
		l.Shape = shapes[0]
	}
	return l, nil
}

// same reports whether two legs are attempts at one run.
func (l Leg) same(o Leg) bool {
	return l.Target.Label == o.Target.Label && l.Shape == o.Shape && l.Axis == o.Axis && l.Level == o.Level && l.Repeat == o.Repeat
}
