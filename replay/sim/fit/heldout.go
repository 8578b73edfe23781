package fit

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Fitted says how well costs are known, and from what.
type Fitted struct {
	// Errors are those of predictions by fits without the measurement.
	Errors []Error `json:"held_out_errors"`
	// NotIdentified are the parameters on which the measurements hardly depend, such as
	// decode-engine.step-base, or decode-table.8 for an entry of a table.
	NotIdentified []string   `json:"not_identified"`
	Range         Range      `json:"range"` // of loads that were fitted
	Fitted        int        `json:"fitted"`
	Excluded      int        `json:"excluded"` // measurements, by the screening
	Provenance    Provenance `json:"provenance"`
}

// Error summarises the errors of the prediction of a metric, as shares of the measured
// values.
type Error struct {
	Metric      string  `json:"metric"`
	Predictions int     `json:"predictions"`
	Median      float64 `json:"median"`
	P90         float64 `json:"p90"`
	Max         float64 `json:"max"`
}

// Provenance is what a fit was made from.
type Provenance struct {
	Version string   `json:"version"` // of the program
	Sources []Source `json:"sources"`
	Model   string   `json:"model,omitempty"`  // that was served
	Server  string   `json:"server,omitempty"` // such as vllm
}

// Source is a file or run folder.
type Source struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// File returns the file of a fit.
func (r *Result) File(p Provenance) *File {
	f := NewFile(r.Deployment)
	f.Fit = &Fitted{Errors: []Error{}, NotIdentified: []string{}, Range: r.Range, Provenance: p}
	rounded := func(x float64) float64 { return math.Round(x*1e4) / 1e4 }
	for _, e := range r.Errors {
		if e.HeldOut {
			f.Fit.Errors = append(f.Fit.Errors, Error{e.Metric.String(), e.Predictions, rounded(e.Median), rounded(e.P90), rounded(e.Max)})
		}
	}
	for _, e := range r.Estimates {
		if !e.Identified() {
			f.Fit.NotIdentified = append(f.Fit.NotIdentified, e.Name)
		}
	}
	for _, row := range r.Rows {
		if row.Findings == nil {
			f.Fit.Fitted++
		} else {
			f.Fit.Excluded++
		}
	}
	return f
}

// check returns the first error.
func (f *Fitted) check() error {
	for _, r := range intervals(f.Range) {
		if r.Low < 0 || r.High < r.Low {
			return fmt.Errorf("range.%s: low %d and high %d are not an interval", r.key, r.Low, r.High)
		}
	}
	for i, e := range f.Errors {
		if e.Predictions < 0 || e.Median < 0 || e.P90 < 0 || e.Max < 0 {
			return fmt.Errorf("held_out_errors[%d]: a negative number", i)
		}
	}
	return nil
}

// HeldOutError returns the error of a metric that nine of ten predictions of held-out
// measurements did not exceed, false if it is not known. A percentile has that of p99.
func (f *File) HeldOutError(metric string) (share float64, known bool) {
	if f == nil || f.Fit == nil {
		return 0, false
	}
	if percentile, latency, found := strings.Cut(metric, "_"); found && strings.HasPrefix(percentile, "p") {
		metric = "p99_" + latency
	}
	i := slices.IndexFunc(f.Fit.Errors, func(e Error) bool { return e.Metric == metric })
	if i < 0 {
		return 0, false
	}
	return f.Fit.Errors[i].P90, true
}

type namedInterval struct {
	Interval
	key, label string
}

func intervals(r Range) []namedInterval {
	return []namedInterval{
		{r.ISL, "isl", "ISL"}, {r.OSL, "osl", "OSL"}, {r.Concurrency, "concurrency", "concurrency"}, {r.Running, "running", "sequences running on an engine"},
	}
}

// slack is by how much a load may exceed the fitted range.
const slack = 1.1

// Outside describes by how far a load is outside the fitted range, nil if it is inside
// or nothing was fitted. Intervals of 0 in load are not compared.
func (f *File) Outside(load Range) (warnings []string) {
	if f.Fit == nil {
		return nil
	}
	fitted := intervals(f.Fit.Range)
	for i, l := range intervals(load) {
		switch r := fitted[i]; {
		case r.High == 0 || l.High == 0:
		case float64(l.High) > slack*float64(r.High):
			warnings = append(warnings, fmt.Sprintf("%s %d is %.2g times the largest fitted, %d", l.label, l.High, float64(l.High)/float64(r.High), r.High))
		case float64(l.High)*slack < float64(r.Low):
			warnings = append(warnings, fmt.Sprintf("%s %d is %.2g of the smallest fitted, %d", l.label, l.High, float64(l.High)/float64(r.Low), r.Low))
		}
	}
	return warnings
}
