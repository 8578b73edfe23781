package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
)

// EngineFit is a fitted engine.
type EngineFit struct {
	Subject string // what was measured
	*fit.Result
	// Refused means that the measurements contradict each other: the result has only the
	// rows.
	Refused bool
}

// Document contains the errors of the prediction, the parameters, the screened
// measurements and the fitted range, with figures of measured against predicted. Its Data
// has one row per measurement and metric. Of a refused fit it contains the reasons.
func (f EngineFit) Document() *doc.Document {
	if f.Refused {
		d := doc.New("ENGINE FIT: REFUSED", f.Subject)
		d.Section("").Text("The measurements are inconsistent, so no engine was fitted.")
		f.screened(d)
		return d
	}
	d := doc.New("ENGINE FIT", f.Subject)
	f.estimates(d.Section("Parameters, with their range in fits to fewer measurements"))
	f.errors(d.Section("Errors of the prediction, in percent"))
	f.screened(d)
	s := d.Section("Fitted range")
	for _, r := range f.Fitted.Range.Intervals() {
		s.Row(r.Name, doc.Int(r.Low)+" to "+doc.Int(r.High), r.Unit, "")
	}
	s = d.DetailSection("Measured against predicted")
	for _, m := range shownMetrics {
		s.Figures(f.figure(m))
	}
	assumed := 0
	for _, r := range f.Rows {
		if r.Findings == nil && r.Load.Prompts == 0 && r.Load.Requests == nil {
			assumed++
		}
	}
	if assumed > 0 {
		d.Note("Note", fmt.Sprintf("The number of prompts of %d measurements is unknown: %d per slot are assumed. A wrong number distorts the parameters.", assumed, fit.PromptsPerSlot))
	}
	d.Data.Columns = []string{"measurement", "metric", "measured", "predicted", "error"}
	for _, r := range f.Rows {
		for _, m := range fit.Metrics {
			if e, ok := r.Error(r.Predicted, m); ok {
				d.Data.Add(r.Name, string(m), r.Values[m], r.Predicted[m], e)
			}
		}
	}
	return d
}

func (f EngineFit) estimates(s *doc.Section) {
	t := doc.Table{Columns: []string{"parameter", "estimate", "low", "high", ""}, Left: 1}
	unidentified := 0
	cost := func(c engine.Cost) string { return doc.Duration(c.In(engine.Millisecond)) }
	for _, e := range f.Estimates {
		remark := ""
		if !e.Identified() {
			unidentified++
			remark = "not identified"
		}
		t.Add(e.Name, cost(e.Value), cost(e.Low), cost(e.High), remark)
	}
	s.Table(t)
	if unidentified > 0 {
		s.Warn("Fits to fewer measurements move " + doc.Count(unidentified, "parameter") +
			" marked \"not identified\" by more than half; predictions for loads that depend on them may be wrong.")
	}
}

func (f EngineFit) errors(s *doc.Section) {
	t := doc.Table{Columns: []string{"metric", "fitted", "median", "p90", "max", "held out", "median", "p90", "max"}, Left: 1}
	cells := func(m fit.Metric, all []fit.Error) []string {
		for _, e := range all {
			if e.Metric == m {
				return []string{doc.Int(e.Predictions), doc.Fixed(100*e.Median, 1), doc.Fixed(100*e.P90, 1), doc.Fixed(100*e.Max, 1)}
			}
		}
		return []string{"0", doc.Absent, doc.Absent, doc.Absent}
	}
	for _, e := range f.Errors {
		t.Add(slices.Concat([]string{measure.MustMetric(string(e.Metric)).Heading()}, cells(e.Metric, f.Errors), cells(e.Metric, f.Fitted.HeldOut))...)
	}
	s.Table(t)
	if len(f.Fitted.HeldOut) > 0 {
		s.Text("Held-out measurements are predicted by fits without those of their shape, and without those of their load.")
	} else {
		s.Warn("There are too few measurements to hold some out, so the errors above are those of the fit itself.")
	}
}

func (f EngineFit) screened(d *doc.Document) {
	s := &doc.Section{Title: "Screening of the measurements"}
	for _, r := range f.Rows {
		if r.Findings != nil {
			s.Text(fmt.Sprintf("%s (excluded): %s.", r.Name, strings.TrimSuffix(strings.Join(r.Findings, "; "), ".")))
		}
	}
	if s.Blocks != nil {
		d.Sections = append(d.Sections, s)
	}
}

// shownMetrics are the metrics that have a figure and a column.
var shownMetrics = []fit.Metric{fit.OutputThroughput, fit.MeanE2EL, fit.MeanTTFT, fit.MeanTPOT, fit.P99TTFT}

// figure draws measured against predicted values of a metric, latencies in seconds.
func (f EngineFit) figure(m fit.Metric) figure.Figure {
	axis, scale := figure.Axis{Quantity: figure.Duration, Log: true}, 1e-3
	if m == fit.OutputThroughput {
		axis, scale = figure.Axis{Unit: "tok/s", Log: true}, 1
	}
	fitted := figure.Series{Name: "fitted", Kind: figure.Points}
	heldOut := figure.Series{Name: "held out", Kind: figure.Points}
	add := func(s *figure.Series, r *fit.Row, predicted fit.Values) {
		if _, ok := r.Error(predicted, m); ok {
			s.Add(scale*r.Values[m], scale*predicted[m], doc.Clean(r.Name+": "+r.Load.String()))
		}
	}
	for i := range f.Rows {
		r := &f.Rows[i]
		add(&fitted, r, r.Predicted)
		for _, predicted := range r.HeldOut {
			add(&heldOut, r, predicted)
		}
	}
	return against(measure.MustMetric(string(m)).Label, "Measured", "Predicted", axis, heldOut, fitted)
}

// EngineFitLine returns the held-out errors of a fit as one line.
func EngineFitLine(f *fit.Result) string {
	var parts []string
	for _, e := range f.Fitted.HeldOut {
		if slices.Contains(shownMetrics, e.Metric) {
			parts = append(parts, measure.MustMetric(string(e.Metric)).Label+" "+strconv.FormatFloat(100*e.Median, 'f', 1, 64)+" %")
		}
	}
	if parts == nil {
		return "too few measurements to hold some out"
	}
	return "median error of held-out measurements: " + strings.Join(parts, ", ")
}
