package fit

import (
	"math"

	"moontide/replay/sim/engine"
	"moontide/trace/stats"
)

// Result is a fitted deployment.
type Result struct {
	Deployment engine.Deployment
	Estimates  []Estimate
	Rows       []Row    // in the order of the measurements
	Errors     []Error  // of predictions of what was fitted
	Notes      []string // assumptions, as sentences
	Fitted     Fitted
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

// Fitted says how well costs are known, and from what.
type Fitted struct {
	// HeldOut are the errors of predictions by fits without the measurement.
	HeldOut []Error `json:"held_out_errors"`
	// NotIdentified are the parameters on which the measurements hardly depend, such as
	// decode-engine.step-base, or decode-table.8 for an entry of a table.
	NotIdentified []string   `json:"not_identified"`
	Range         Range      `json:"range"` // of loads that were fitted
	Fitted        int        `json:"fitted"`
	Excluded      int        `json:"excluded"` // measurements, by the screening
	Provenance    Provenance `json:"provenance"`
}

// Error summarises the errors of the predictions of a metric, as shares of the measured
// values with four decimals.
type Error struct {
	Metric      Metric  `json:"metric"`
	Predictions int     `json:"predictions"`
	Median      float64 `json:"median"`
	P90         float64 `json:"p90"`
	Max         float64 `json:"max"`
}

// summarise sets what follows from the predictions and estimates.
func (r *Result) summarise() {
	r.Errors = errorsOf(r.Rows, func(row *Row) []Values { return []Values{row.Predicted} })
	r.Fitted.HeldOut = errorsOf(r.Rows, func(row *Row) []Values { return row.HeldOut })
	r.Fitted.NotIdentified = []string{}
	for _, e := range r.Estimates {
		if !e.Identified() {
			r.Fitted.NotIdentified = append(r.Fitted.NotIdentified, e.Name)
		}
	}
}

// errorsOf returns the errors of predictions of rows by metric.
func errorsOf(rows []Row, predictions func(row *Row) []Values) []Error {
	all, rounded := []Error{}, func(x float64) float64 { return math.Round(x*1e4) / 1e4 }
	for _, m := range Metrics {
		var errors []float64
		for i := range rows {
			for _, predicted := range predictions(&rows[i]) {
				if e, ok := rows[i].Error(predicted, m); ok {
					errors = append(errors, math.Abs(e))
				}
			}
		}
		if s := stats.Of(errors); s.Count > 0 {
			all = append(all, Error{m, s.Count, rounded(s.Quantile(0.5)), rounded(s.Quantile(0.9)), rounded(s.Max)})
		}
	}
	return all
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

func (i *Interval) include(n int) {
	if *i == (Interval{}) {
		i.Low = n
	}
	i.Low, i.High = min(i.Low, n), max(i.High, n)
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

// namedInterval is an interval with the name of what it limits.
type namedInterval struct {
	name string
	Interval
}

func (r Range) intervals() []namedInterval {
	return []namedInterval{{"ISL", r.ISL}, {"OSL", r.OSL}, {"concurrency", r.Concurrency}, {"sequences running on an engine", r.Running}}
}
