package fit

import (
	"fmt"
	"math"

	"moontide/replay/sim/engine"
	"moontide/trace/stats"
)

// Row is a measurement beside its predictions.
type Row struct {
	Measurement
	Findings  []Finding // of the screening; a row with one is not fitted
	Predicted Values    // zero if it is not fitted
	// HeldOut are predictions by fits without the rows of its shape, and without those
	// of its load.
	HeldOut []Values
}

// Finding is a contradiction that the screening found in a measurement.
type Finding struct {
	Kind   string // such as "Little's law"
	Reason string // with the values and the limit
}

// Error returns the relative error of a prediction of a metric, or false if it was not
// measured or not predicted.
func (r *Row) Error(predicted Values, m Metric) (relative float64, ok bool) {
	if r.Values[m] == 0 || predicted[m] == 0 {
		return 0, false
	}
	return predicted[m]/r.Values[m] - 1, true
}

// Estimate is a parameter of the fitted deployment. Name is one of
// [engine.Parameters], with the prefix "decode-engine." for a cost of decode engines
// and the suffix ".64" for the entry of a decode table at 64 sequences, whose value is that
// of a whole step: with step-base. Low and High are the range of its values in the fits to
// fewer rows.
type Estimate struct {
	Name             string
	Value, Low, High engine.Cost
}

// Identified reports whether no fit to fewer rows moved the parameter by more than half.
func (e Estimate) Identified() bool {
	const most = 1.5
	return float64(e.High) <= most*float64(e.Value) && float64(e.Value) <= most*float64(e.Low)
}

// ErrorSummary summarises the absolute relative errors of the predictions of a metric.
type ErrorSummary struct {
	Metric           Metric
	HeldOut          bool // the predictions are by fits without the measurement
	Predictions      int
	Median, P90, Max float64
}

// Range is a range of loads. An interval of 0 is unknown.
type Range struct {
	ISL         Interval `json:"isl"`         // tokens of a prompt
	OSL         Interval `json:"osl"`         // tokens of an answer
	Concurrency Interval `json:"concurrency"` // requests in flight
	Running     Interval `json:"running"`     // sequences running on an engine
}

// Interval is a range of integers, both ends included.
type Interval struct {
	Low  int `json:"low"`
	High int `json:"high"`
}

// Result is a fitted deployment.
type Result struct {
	Deployment engine.Deployment
	Estimates  []Estimate
	Rows       []Row // in the order of the measurements
	Errors     []ErrorSummary
	Range      Range    // of the loads that were fitted
	Notes      []string // assumptions, as sentences
}

// include extends the range by a fitted measurement.
func (r *Range) include(m *Measurement, engines int) {
	lengths := m.Load.Requests
	if len(lengths) == 0 {
		lengths = []Request{{Input: m.Load.ISL, Output: m.Load.OSL}}
	}
	for _, q := range lengths {
		r.ISL.include(q.Input)
		r.OSL.include(q.Output)
	}
	batch := int(math.Ceil(m.batch(engines)))
	r.Concurrency.include(batch * engines)
	r.Running.include(batch)
}

func (i *Interval) include(n int) {
	if *i == (Interval{}) {
		*i = Interval{n, n}
		return
	}
	i.Low, i.High = min(i.Low, n), max(i.High, n)
}

// summarise returns the errors of fits to fewer rows, then those of the fit to all.
func summarise(rows []Row) (all []ErrorSummary) {
	for _, heldOut := range []bool{true, false} {
		for _, m := range Metrics() {
			var errors []float64
			for i := range rows {
				predictions := []Values{rows[i].Predicted}
				if heldOut {
					predictions = rows[i].HeldOut
				}
				for _, predicted := range predictions {
					if e, ok := rows[i].Error(predicted, m); ok {
						errors = append(errors, math.Abs(e))
					}
				}
			}
			if sample := stats.Of(errors); sample.Count > 0 {
				all = append(all, ErrorSummary{m, heldOut, sample.Count, sample.Quantile(0.5), sample.Quantile(0.9), sample.Max})
			}
		}
	}
	return all
}

// notes returns what was assumed.
func notes(rows []Row) []string {
	assumed := 0
	for _, row := range rows {
		if row.Load.Prompts == 0 && len(row.Load.Requests) == 0 {
			assumed++
		}
	}
	if assumed == 0 {
		return nil
	}
	return []string{fmt.Sprintf("The number of prompts of %d measurements is unknown: %d per slot are assumed. A wrong number distorts the parameters.", assumed, PromptsPerSlot)}
}
