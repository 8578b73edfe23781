package enginefile

import (
	"math"
	"slices"

	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
)

// OfFit returns the file of a fit.
func OfFit(r *fit.Result, p Provenance) *File {
	f := New(r.Deployment)
	f.Fit = &Fit{Estimates: []Estimate{}, Covariance: Covariance{slices.Concat([]string{}, r.Parameters), [][]float64{}}, Errors: []Errors{}, Notes: slices.Concat([]string{}, r.Notes), Provenance: p}
	for _, e := range r.Estimates {
		if e.Fitted {
			f.Fit.Estimates = append(f.Fit.Estimates, Estimate{e.Name, timeOf(e.Low), timeOf(e.High), e.Identified})
		}
	}
	for _, row := range r.Covariance {
		var values []float64
		for _, v := range row {
			values = append(values, rounded(v))
		}
		f.Fit.Covariance.Matrix = append(f.Fit.Covariance.Matrix, values)
	}
	for _, e := range r.Errors {
		if e.Rows > 0 {
			f.Fit.Errors = append(f.Fit.Errors, Errors{e.Metric.String(), e.Role == fit.HeldOut, e.Rows, rounded(e.Median), rounded(e.P90), rounded(e.Max)})
		}
	}
	for _, row := range r.Rows {
		switch row.Role {
		case fit.Fitted:
			f.Fit.Provenance.Fitted++
		case fit.HeldOut:
			f.Fit.Provenance.HeldOut++
		case fit.Excluded:
			f.Fit.Provenance.Excluded++
		}
	}
	f.Fit.Range = r.Range
	return f
}

// rounded returns v with six significant digits, at most the largest number of JSON.
func rounded(v float64) float64 {
	if v == 0 || math.IsNaN(v) {
		return 0
	}
	v = min(max(v, -math.MaxFloat64), math.MaxFloat64)
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	if math.IsInf(scale, 0) || scale == 0 || math.IsInf(v*scale, 0) {
		return v
	}
	return math.Round(v*scale) / scale
}

// timeOf returns a cost as text with four significant digits.
func timeOf(c engine.Cost) Time {
	digits := engine.Cost(1)
	for c/digits >= 10_000 {
		digits *= 10
	}
	return Time(((c + digits/2) / digits * digits).String())
}
