package fit

import (
	"fmt"
	"math"
	"slices"
)

// result predicts all rows with the fitted deployment.
func (f *fitter) result(best attempt, compared []Structure) (*Result, error) {
	r := &Result{Deployment: best.deployment, Rows: f.rows, Structures: compared, Noise: best.uncertainty.noise}
	r.Estimates = best.estimates()
	for i := range best.at {
		row := make([]float64, len(best.at))
		for j := range row {
			row[j] = best.uncertainty.covariance.At(i, j)
		}
		r.Covariance = append(r.Covariance, row)
		r.Parameters = append(r.Parameters, best.free[i].name)
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Role == Excluded {
			continue
		}
		predicted, inFlight, err := f.loads[i].simulate(best.deployment)
		if err != nil {
			return nil, fmt.Errorf("fit: predicting %s: %w", row.Name, err)
		}
		row.Predicted = predicted
		if row.Role == Fitted {
			r.Range.include(row.Load, inFlight, engines(best.deployment), row.batch(engines(best.deployment)))
		}
	}
	r.Errors = summarise(r.Rows)
	r.Notes = f.notes(r)
	return r, nil
}

// notes returns what was assumed, and what the reader should doubt.
func (f *fitter) notes(r *Result) (notes []string) {
	assumed, short := 0, 0
	for _, row := range r.Rows {
		if row.Load.Prompts == 0 && len(row.Load.Requests) == 0 {
			assumed++
		}
		if row.Load.MeanOutput > 0 {
			short++
		}
	}
	if assumed > 0 {
		notes = append(notes, fmt.Sprintf("The number of prompts of %d measurements is unknown: %d per slot are assumed. A wrong number distorts the parameters.", assumed, PromptsPerSlot))
	}
	if short > 0 {
		notes = append(notes, fmt.Sprintf("Answers of %d measurements stop before the OSL: their mean length is taken from the measurement, also where it is held out; some are taken to reach the OSL and the others to stop anywhere before it.", short))
	}
	return notes
}

// include extends the range by a fitted load.
func (r *Range) include(l Load, inFlight, engines int, batch float64) {
	lengths := l.Requests
	if len(lengths) == 0 {
		lengths = []Request{{Input: l.ISL, Output: l.OSL}}
	}
	for _, q := range lengths {
		r.ISL.include(q.Input)
		r.OSL.include(q.Output)
	}
	r.Concurrency.include(inFlight)
	r.Running.include(max(1, int(math.Round(batch))))
	r.Running.include(max(1, min(inFlight/engines, int(math.Ceil(batch)))))
}

func (i *Interval) include(n int) {
	if *i == (Interval{}) {
		*i = Interval{n, n}
		return
	}
	i.Low, i.High = min(i.Low, n), max(i.High, n)
}

// summarise returns the errors by role and metric.
func summarise(rows []Row) (all []ErrorSummary) {
	for _, role := range []Role{HeldOut, Fitted} {
		for m := range numMetrics {
			if errors := ErrorsOf(rows, role, m); len(errors) > 0 {
				all = append(all, Summarise(role, m, errors))
			}
		}
	}
	return all
}

// ErrorsOf returns the absolute relative errors of metrics over the rows with a role,
// ascending.
func ErrorsOf(rows []Row, role Role, metrics ...Metric) (errors []float64) {
	for _, row := range rows {
		if row.Role != role {
			continue
		}
		for _, m := range metrics {
			if e, ok := row.Error(m); ok {
				errors = append(errors, math.Abs(e))
			}
		}
	}
	slices.Sort(errors)
	return errors
}

// Summarise returns the summary of ascending errors.
func Summarise(role Role, m Metric, errors []float64) ErrorSummary {
	return ErrorSummary{Metric: m, Role: role, Rows: len(errors), Median: quantile(errors, 0.5), P90: quantile(errors, 0.9), Max: quantile(errors, 1)}
}
