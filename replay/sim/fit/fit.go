package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"moontide/replay/sim/engine"
)

// Options configures a fit. The zero value fits one engine with high limits.
type Options struct {
	// Template is the deployment whose costs are fitted. Its numbers of engines,
	// routing and limits are kept.
	Template engine.Deployment
	// Refit keeps the costs of decoding of Template, and fits the others: those of
	// prompts and transfers and the latency of requests. Two measurements, at a low and
	// a high load, are enough.
	Refit bool
	// Seed selects the order of lengths and arrivals.
	Seed uint64
}

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
	assumed := 0
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Findings == nil {
			rows = append(rows, row)
		}
		if row.Load.Prompts == 0 && row.Load.Requests == nil {
			assumed++
		}
	}
	r.Fitted.Fitted, r.Fitted.Excluded = len(rows), len(r.Rows)-len(rows)
	switch {
	case len(r.Rows) == 0:
		return nil, errors.New("fit: no measurements")
	case 3*r.Fitted.Excluded > len(r.Rows):
		return nil, &RefusedError{r.Rows, r.Fitted.Excluded}
	case assumed > 0:
		r.Notes = []string{fmt.Sprintf("The number of prompts of %d measurements is unknown: %d per slot are assumed. A wrong number distorts the parameters.", assumed, promptsPerSlot)}
	}
	best, err := search(ctx, rows, options)
	if err != nil {
		return nil, err
	}
	r.Deployment, r.Estimates = best.deployment(best.at), best.estimates()
	engines, _, _ := decoding(&r.Deployment)
	for _, row := range rows {
		if row.Predicted, err = Simulate(r.Deployment, row.Load, options.Seed); err != nil {
			return nil, fmt.Errorf("fit: %s cannot be simulated: check the template's limits: %w", row.Name, err)
		}
		r.Fitted.Range.include(&row.Measurement, engines)
	}
	// Lengths that differ by less than a third are hardly different shapes.
	about := func(length int) float64 { return math.Round(2 * math.Log2(float64(length))) }
	r.holdOut(ctx, best, func(l Load) string { return fmt.Sprint(about(l.ISL), about(l.OSL)) })
	r.holdOut(ctx, best, func(l Load) string { return fmt.Sprint(l.Concurrency, l.Rate) })
	r.summarise()
	return r, ctx.Err()
}

// Scales of the loss, and iterations of the search. Far from a minimum all residuals are
// large, and a fine scale would give up on most of them.
const (
	coarseScale      = 0.3
	fineScale        = 0.03
	coarseIterations = 6
	fineIterations   = 8
	lastIterations   = 20
	foldIterations   = 5
)

// search returns the best fit of all deployments, each from its best start.
func search(ctx context.Context, rows []*Row, options Options) (*model, error) {
	best := &model{loss: math.Inf(1)}
	for _, d := range deployments(options.Template.Clone()) {
		m, coarse := newModel(d, rows, options), &model{loss: math.Inf(1)}
		if n := m.missing(); n > 0 {
			return nil, fmt.Errorf("fit: %d measurements cannot give %d parameters: measure more loads, at other concurrencies and prompt lengths", len(rows), len(m.costs)+len(m.knots))
		}
		for _, start := range m.starts() {
			if s := m.solve(ctx, start, coarseScale, coarseIterations); s.loss < coarse.loss {
				coarse = s
			}
		}
		if fine := m.solve(ctx, coarse.at, fineScale, fineIterations); fine.loss < best.loss {
			best = fine
		}
	}
	return best.solve(ctx, best.at, fineScale, lastIterations), nil
}

// holdOut predicts each group of rows of the same key with a fit to the others.
func (r *Result) holdOut(ctx context.Context, best *model, key func(l Load) string) {
	groups := map[string][]*Row{}
	for _, row := range best.rows {
		groups[key(row.Load)] = append(groups[key(row.Load)], row)
	}
	for group, left := range groups {
		kept := slices.DeleteFunc(slices.Clone(best.rows), func(row *Row) bool { return key(row.Load) == group })
		m, enough := best.refit(ctx, kept)
		if !enough {
			continue
		}
		d := m.deployment(m.at)
		for _, row := range left {
			if predicted, err := Simulate(d, row.Load, m.seed); err == nil {
				row.HeldOut = append(row.HeldOut, predicted)
			}
		}
		for _, other := range m.estimates() {
			i := slices.IndexFunc(r.Estimates, func(e Estimate) bool { return e.Name == other.Name })
			e := &r.Estimates[i]
			e.Low, e.High = min(e.Low, other.Value), max(e.High, other.Value)
		}
	}
}

// refit fits the model to fewer rows, from its optimum, unless they are too few. It has no
// entries of the decode table that they do not measure: the differences to them and beyond
// them become one.
func (m model) refit(ctx context.Context, rows []*Row) (fewer *model, enough bool) {
	if len(rows) == 0 {
		return nil, false
	}
	engines, _, _ := decoding(&m.template)
	measured := decodeKnots(rows, engines)
	start, difference := slices.Clone(m.at[:len(m.costs)]), 0.0
	for i, n := range m.knots {
		difference += math.Exp(m.at[len(m.costs)+i])
		if slices.Contains(measured, n) {
			start, difference = append(start, math.Log(difference)), 0
		}
	}
	m.rows, m.knots = rows, slices.DeleteFunc(slices.Clone(m.knots), func(n int) bool { return !slices.Contains(measured, n) })
	if m.missing() > 0 {
		return nil, false
	}
	return m.solve(ctx, start, fineScale, foldIterations), true
}
