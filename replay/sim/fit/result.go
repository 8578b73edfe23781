package fit

import (
	"fmt"

	"moontide/replay/sim/engine"
)

// Options configures a fit. The zero value fits one engine with high limits.
type Options struct {
	// Template is the deployment whose costs are fitted. Its numbers of engines,
	// routing and limits are kept. A disaggregated template gets decode engines with
	// costs of their own.
	Template engine.Deployment
	// Refit, if set, are the only parameters fitted; the others keep the values of
	// Template. Fixed are parameters that keep those values.
	Refit, Fixed []string
	// HeldOut are the indices of measurements that are predicted only. Nil selects
	// about two thirds of them, so that the others cover the range of loads. An
	// empty slice holds out none.
	HeldOut []int
	// Seed selects the order of lengths and arrivals.
	Seed uint64
	// Starts is the number of starting points; 0 is 2.
	Starts int
	// KeepContradictory fits rows that fail the screening too.
	KeepContradictory bool
}

// Role is what a measurement was used for.
type Role string

// The roles of a measurement.
const (
	Fitted   Role = "fitted"
	HeldOut  Role = "held out"
	Excluded Role = "excluded" // by the screening
)

// Row is a measurement beside its prediction.
type Row struct {
	Measurement
	Role      Role
	Findings  []Finding // of the screening
	Predicted Values    // zero if Excluded
}

// Error returns the relative error of the prediction of a metric, or false if it
// was not measured or not predicted.
func (r Row) Error(m Metric) (relative float64, ok bool) {
	measured, predicted := r.Values[m], r.Predicted[m]
	if measured == 0 || predicted == 0 {
		return 0, false
	}
	return predicted/measured - 1, true
}

// Finding is a contradiction that the screening found in a measurement.
type Finding struct {
	Kind   string // such as "Little's law"
	Reason string // with the values and the limit
	// Excludes is false for a finding that does not exclude its row from a fit.
	Excludes bool
}

// Estimate is a parameter of the fitted deployment. Name is one of
// [engine.Parameters], with the prefix "decode-engine." for a cost of decode engines
// and the suffix ".64" for the entry of a decode table at 64 sequences.
type Estimate struct {
	Name      string
	Value     engine.Cost
	Low, High engine.Cost // 95 % interval
	// Identified is false if the measurements hardly depend on the parameter: its
	// interval is wider than 50 % to either side.
	Identified bool
	// Fitted is false for a parameter that kept its value.
	Fitted bool
}

// ErrorSummary summarises the absolute relative errors of rows with one role.
type ErrorSummary struct {
	Metric           Metric
	Role             Role
	Rows             int
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

// Structure is one of the structures that a fit compared: settings that are not
// costs, such as the sharing of links.
type Structure struct {
	Name string  // such as "max-num-batched-tokens 4096, transfer-sharing fair"
	Loss float64 // the lowest one is used
}

// Result is a fitted deployment.
type Result struct {
	Deployment engine.Deployment
	Estimates  []Estimate
	// Parameters are the names of the fitted parameters, and Covariance is that of
	// their natural logarithms. An entry of a decode table stands for its
	// difference to the entry before; its estimate is the whole entry.
	Parameters []string
	Covariance [][]float64
	Rows       []Row // in the order of the measurements
	Errors     []ErrorSummary
	Range      Range       // of the loads that were fitted
	Structures []Structure // best first; the first is used
	// Noise is the relative standard deviation of what the model leaves unexplained.
	Noise float64
	// Notes are assumptions and warnings, as sentences.
	Notes []string
}

// RefusedError is the error for measurements that contradict themselves.
type RefusedError struct {
	Rows []Row // with their findings
}

func (e *RefusedError) Error() string {
	excluded := 0
	for _, r := range e.Rows {
		if r.Role == Excluded {
			excluded++
		}
	}
	return fmt.Sprintf("%d of %d measurements contradict themselves or each other: measure again, with a number of prompts that is known and a server that is warm", excluded, len(e.Rows))
}
