package enginefile

import (
	"fmt"
	"math"

	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
)

// Fit says how well the costs are known, and from what.
type Fit struct {
	// Estimates are the fitted parameters; their values are in the sections above.
	Estimates  []Estimate `json:"estimates"`
	Covariance Covariance `json:"covariance"`
	Range      Range      `json:"range"` // of loads that were fitted
	Errors     []Errors   `json:"errors"`
	Provenance Provenance `json:"provenance"`
	Notes      []string   `json:"notes"` // assumptions and warnings
}

// Covariance is the covariance of the natural logarithms of the parameters, from which
// deployments are drawn. An entry of a decode table, such as decode-table.8, is here the
// difference to the entry before.
type Covariance struct {
	Parameters []string    `json:"parameters"`
	Matrix     [][]float64 `json:"matrix"`
}

// Estimate is a fitted parameter.
type Estimate struct {
	// Parameter is a setting, such as step-base or decode-engine.step-base, or an entry
	// of a decode table, such as decode-table.8.
	Parameter string `json:"parameter"`
	Low       Time   `json:"low"` // of the 95 % interval
	High      Time   `json:"high"`
	// Identified is false if the measurements hardly depend on the parameter.
	Identified bool `json:"identified"`
}

// Time is a time with its unit, such as "46.7ns".
type Time string

// Cost returns the time as a cost.
func (t Time) Cost() (engine.Cost, error) { return engine.ParseCost(string(t)) }

// Range is a range of loads, and Interval a range of integers.
type (
	Range    = fit.Range
	Interval = fit.Interval
)

// Errors summarises the errors of the prediction of a metric, as shares of the measured
// values.
type Errors struct {
	Metric  string  `json:"metric"`
	HeldOut bool    `json:"held_out"` // of measurements that were not fitted
	Rows    int     `json:"rows"`
	Median  float64 `json:"median"`
	P90     float64 `json:"p90"`
	Max     float64 `json:"max"`
}

// Provenance is what a fit was made from.
type Provenance struct {
	Version  string   `json:"version"` // of the program
	Sources  []Source `json:"sources"`
	Model    string   `json:"model,omitempty"`  // that was served
	Server   string   `json:"server,omitempty"` // such as vllm
	Fitted   int      `json:"fitted"`           // measurements
	HeldOut  int      `json:"held_out"`
	Excluded int      `json:"excluded"` // by the screening
}

// Source is a file or run folder.
type Source struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

const maxEstimates = 256

// check returns the first error.
func (f *Fit) check(d *engine.Deployment) error {
	if n := max(len(f.Estimates), len(f.Covariance.Parameters)); n > maxEstimates {
		return fmt.Errorf("%d estimates; at most %d", n, maxEstimates)
	}
	names := map[string]bool{}
	scaleTimes(d, func(name string) float64 {
		names[name] = true
		return 1
	})
	for i, e := range f.Estimates {
		if !names[e.Parameter] {
			return fmt.Errorf("estimates[%d].parameter: %.60q is no time of this deployment", i, e.Parameter)
		}
		low, err := e.Low.Cost()
		if err != nil {
			return fmt.Errorf("estimates[%d].low: %w", i, err)
		}
		high, err := e.High.Cost()
		if err != nil {
			return fmt.Errorf("estimates[%d].high: %w", i, err)
		}
		if low < 0 || high < low {
			return fmt.Errorf("estimates[%d]: low %v and high %v are not an interval of times", i, low, high)
		}
	}
	if err := f.Covariance.check(names); err != nil {
		return fmt.Errorf("covariance.%w", err)
	}
	for _, r := range intervals(f.Range) {
		if r.Low < 0 || r.High < r.Low {
			return fmt.Errorf("range.%s: low %d and high %d are not an interval", r.key, r.Low, r.High)
		}
	}
	for i, e := range f.Errors {
		if e.Rows < 0 || e.Median < 0 || e.P90 < 0 || e.Max < 0 {
			return fmt.Errorf("errors[%d]: a negative number", i)
		}
	}
	return nil
}

func (c *Covariance) check(known map[string]bool) error {
	n := len(c.Parameters)
	for i, name := range c.Parameters {
		if !known[name] {
			return fmt.Errorf("parameters[%d]: %.60q is no time of this deployment", i, name)
		}
	}
	if len(c.Matrix) != n {
		return fmt.Errorf("matrix: %d rows for %d parameters", len(c.Matrix), n)
	}
	for i, row := range c.Matrix {
		if len(row) != n {
			return fmt.Errorf("matrix[%d]: %d values for %d parameters", i, len(row), n)
		}
		if row[i] < 0 {
			return fmt.Errorf("matrix[%d][%d]: a negative variance: %v", i, i, row[i])
		}
		for j, v := range row[:i] {
			if mirror := c.Matrix[j][i]; math.Abs(v-mirror) > 1e-4*math.Abs(v)+1e-12 {
				return fmt.Errorf("matrix[%d][%d]: %v is not symmetric to %v", i, j, v, mirror)
			}
		}
	}
	return nil
}
