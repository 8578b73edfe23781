// Package fit estimates the costs of a simulated deployment
// ([moontide/replay/sim/engine]) from measurements of a real one: loads, and the
// throughput and latencies measured under them. Read measurements with [ReadTable], or
// make them from recorded requests, and call [Fit]:
//
//	table, err := fit.ReadTable(file)
//	...
//	result, err := fit.Fit(ctx, table.Measurements, fit.Options{})
//	cluster, err := result.Deployment.New()
//
// [Screen] first excludes rows that contradict laws that hold for every server, such as
// Little's. The form of the costs is fixed by the kind of deployment: a step takes
//
//	step-base + decode-table(sequences) + decode-per-context-token x context
//	          + (if it computes prompt tokens) prefill-step + prefill-per-token x tokens
//
// and a request waits request-latency before. Prefill engines have costs of their own,
// compute a prompt at a time, and send it over a link. Only the budget of tokens of a step,
// and whether transfers share the link, are chosen, by the loss. The logarithms of predicted
// to measured values are minimised on the logarithms of the costs, from three points.
//
// What a fit can promise is its held-out error: each row is predicted by a fit without the
// rows of its shape, and by one without those of its load. A parameter that these fits move
// by more than half is not identified.
//
// One request at a time at two prompt lengths identifies the costs of a prompt, long answers
// at several concurrencies the decode table, which does not reach beyond them, long contexts
// at a high concurrency the cost of context, and many long prompts with short answers what
// prefill costs, apart from latency. A wrong number of prompts is absorbed by the costs.
package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"moontide/replay/sim/engine"
	"moontide/trace/stats"
)

// Options configures a fit. The zero value fits one engine with high limits.
type Options struct {
	// Template is the deployment whose costs are fitted. Its numbers of engines,
	// routing and limits are kept.
	Template engine.Deployment
	// Refit keeps the costs of decoding of Template. Two measurements are enough for the
	// others, at a low and a high load.
	Refit bool
	Seed  uint64 // of the order of lengths and the arrivals
}

// Result is a fitted deployment.
type Result struct {
	Deployment engine.Deployment
	Estimates  []Estimate
	Rows       []Row   // in the order of the measurements
	Errors     []Error // of predictions of what was fitted
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
func (e Estimate) Identified() bool { return 2*e.High <= 3*e.Value && 2*e.Value <= 3*e.Low }

// RefusedError is the error for measurements that contradict themselves.
type RefusedError struct {
	Rows     []Row // with their findings
	Excluded int   // those with findings
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%d of %d measurements contradict themselves or each other: measure again, with a number of prompts that is known and a server that is warm", e.Excluded, len(e.Rows))
}

// Fit estimates the costs of a deployment from measurements. It fails with a
// [RefusedError] if more than a third contradict themselves. The same measurements and
// options give the same result.
func Fit(ctx context.Context, measurements []Measurement, options Options) (*Result, error) {
	r := &Result{Rows: Screen(measurements)}
	var rows []*Row
	for i := range r.Rows {
		if r.Rows[i].Findings == nil {
			rows = append(rows, &r.Rows[i])
		}
	}
	r.Fitted.Fitted, r.Fitted.Excluded = len(rows), len(r.Rows)-len(rows)
	switch {
	case len(r.Rows) == 0:
		return nil, errors.New("fit: no measurements")
	case 3*r.Fitted.Excluded > len(r.Rows):
		return nil, &RefusedError{r.Rows, r.Fitted.Excluded}
	}
	best, err := search(ctx, rows, options)
	if err != nil {
		return nil, err
	}
	r.Deployment, r.Estimates = best.deployment(best.at), best.estimates()
	for _, row := range rows {
		if row.Predicted, err = Simulate(r.Deployment, row.Load, options.Seed); err != nil {
			return nil, fmt.Errorf("fit: %s cannot be simulated: check the template's limits: %w", row.Name, err)
		}
		r.Fitted.Range.include(&row.Measurement, best.engines)
	}
	// Lengths that differ by less than a third are hardly different shapes.
	about := func(length int) float64 { return math.Round(2 * math.Log2(float64(length))) }
	r.holdOut(ctx, best, func(l Load) string { return fmt.Sprint(about(l.ISL), about(l.OSL)) })
	r.holdOut(ctx, best, func(l Load) string { return fmt.Sprint(l.Concurrency, l.Rate) })
	r.Errors = errorsOf(rows, func(row *Row) []Values { return []Values{row.Predicted} })
	r.Fitted.HeldOut = errorsOf(rows, func(row *Row) []Values { return row.HeldOut })
	r.Fitted.NotIdentified = []string{}
	for _, e := range r.Estimates {
		if !e.Identified() {
			r.Fitted.NotIdentified = append(r.Fitted.NotIdentified, e.Name)
		}
	}
	return r, ctx.Err()
}

// Scales of the loss. Far from a minimum all residuals are large, and a fine scale would
// give up on most of them.
const coarse, fine = 0.3, 0.03

// search returns the best fit of all deployments, each from its best start.
func search(ctx context.Context, rows []*Row, options Options) (*model, error) {
	best := &model{loss: math.Inf(1)}
	for _, d := range deployments(options.Template.Clone()) {
		m := newModel(d, rows, options)
		starts := m.starts()
		if starts == nil {
			return nil, fmt.Errorf("fit: too few measurements (%d) for %d parameters: measure TTFT and TPOT of more loads, at other concurrencies and prompt lengths", len(rows), len(m.costs)+len(m.knots))
		}
		near := &model{loss: math.Inf(1)}
		for _, start := range starts {
			if s := m.solve(ctx, start, coarse, 6); s.loss < near.loss {
				near = s
			}
		}
		if m = m.solve(ctx, near.at, fine, 8); m.loss < best.loss {
			best = m
		}
	}
	return best.solve(ctx, best.at, fine, 20), nil
}

// holdOut predicts each group of rows of the same key with a fit to the others.
func (r *Result) holdOut(ctx context.Context, best *model, key func(l Load) string) {
	groups := map[string][]*Row{}
	for _, row := range best.rows {
		groups[key(row.Load)] = append(groups[key(row.Load)], row)
	}
	for group, left := range groups {
		m := best.without(func(row *Row) bool { return key(row.Load) == group })
		if m.starts() == nil {
			continue // too few
		}
		m = m.solve(ctx, m.at, fine, 5)
		d := m.deployment(m.at)
		for _, row := range left {
			predicted, _ := Simulate(d, row.Load, m.seed)
			row.HeldOut = append(row.HeldOut, predicted)
		}
		for _, other := range m.estimates() {
			e := &r.Estimates[slices.IndexFunc(r.Estimates, func(e Estimate) bool { return e.Name == other.Name })]
			e.Low, e.High = min(e.Low, other.Value), max(e.High, other.Value)
		}
	}
}

// errorsOf returns the errors of predictions of rows by metric.
func errorsOf(rows []*Row, predictions func(row *Row) []Values) []Error {
	all, rounded := []Error{}, func(x float64) float64 { return math.Round(x*1e4) / 1e4 }
	for _, m := range Metrics {
		var errors []float64
		for _, row := range rows {
			for _, predicted := range predictions(row) {
				if e, ok := row.Error(predicted, m); ok {
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
