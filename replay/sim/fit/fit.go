package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

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
	Rows []Row // with their findings
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%d of %d measurements contradict themselves or each other: measure again, with a number of prompts that is known and a server that is warm", excluded(e.Rows), len(e.Rows))
}

func excluded(rows []Row) (n int) {
	for _, r := range rows {
		if r.Findings != nil {
			n++
		}
	}
	return n
}

// mostExcluded is the share of rows with findings from which a fit is refused.
const mostExcluded = 1. / 3

// Fit estimates the costs of a deployment from measurements. It fails with a
// [RefusedError] if they contradict themselves. The same measurements and options give
// the same result.
func Fit(ctx context.Context, measurements []Measurement, options Options) (*Result, error) {
	f := &fitter{options: options, rows: Screen(measurements)}
	switch n := excluded(f.rows); {
	case len(f.rows) == 0:
		return nil, errors.New("fit: no measurements")
	case float64(n) > mostExcluded*float64(len(f.rows)):
		return nil, &RefusedError{f.rows}
	}
	var all []int
	for i, r := range f.rows {
		f.loads = append(f.loads, prepare(r.Load, options.Template.Engine.WithDefaults().BlockSize, options.Seed))
		if r.Findings == nil {
			all = append(all, i)
		}
	}
	best, err := f.best(ctx, all)
	if err != nil {
		return nil, err
	}
	return f.result(ctx, best, all)
}

// fitter is a fit under way.
type fitter struct {
	options Options
	rows    []Row
	loads   []*preparedLoad // of the rows
	known   sync.Map        // predictions by row and costs
}

// solution is a fit of a form to some rows.
type solution struct {
	form
	at   []float64
	loss float64
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

// best returns the best fit of all forms, each from its best start.
func (f *fitter) best(ctx context.Context, rows []int) (best solution, err error) {
	best.loss = math.Inf(1)
	measurements := f.measurements(rows)
	for _, template := range forms(f.options.Template) {
		s := solution{form: form{template: template}, loss: math.Inf(1)}
		if !f.options.Refit {
			s.knots = decodeKnots(measurements, engines(&template))
		}
		if n := f.independent(rows); n < len(s.costs()) {
			return s, fmt.Errorf("fit: %d measurements with %d independent values cannot give %d parameters: measure more loads, at other concurrencies and prompt lengths", len(rows), n, len(s.costs()))
		}
		for _, start := range s.starts(measurements) {
			if at, loss := f.problem(s.form, rows, start, coarseScale).solve(ctx, start, coarseIterations); loss < s.loss {
				s.at, s.loss = at, loss
			}
		}
		if s.at == nil {
			continue
		}
		if s.at, s.loss = f.problem(s.form, rows, s.at, fineScale).solve(ctx, s.at, fineIterations); s.loss < best.loss {
			best = s
		}
	}
	if best.at == nil {
		return best, errors.New("fit: no deployment can be simulated under these loads: check the template's limits")
	}
	best.at, best.loss = f.problem(best.form, rows, best.at, fineScale).solve(ctx, best.at, lastIterations)
	return best, ctx.Err()
}

func (f *fitter) measurements(rows []int) (all []Measurement) {
	for _, i := range rows {
		all = append(all, f.rows[i].Measurement)
	}
	return all
}

// independent returns the number of measured means that say different things: in a
// closed loop throughput and E2E latency are the same.
func (f *fitter) independent(rows []int) (n int) {
	for _, i := range rows {
		for _, m := range []Metric{MeanTTFT, MeanTPOT, MeanE2EL} {
			if f.rows[i].Values[m] > 0 {
				n++
			}
		}
	}
	return n
}

// weights of the metrics. Request throughput counts only where output throughput is
// missing.
var weights = [numMetrics]float64{
	OutputThroughput: 1, MeanE2EL: 1, MeanTTFT: 0.8, MeanTPOT: 1, P99E2EL: 0.5, P99TTFT: 0.25, P99TPOT: 0.3,
}

// priorWeight pulls costs to where the search began, so that those on which nothing
// depends stay there.
const priorWeight = 0.003

// problem returns the problem of fitting a form to rows: the residuals are the weighted
// logarithms of predicted to measured values.
func (f *fitter) problem(of form, rows []int, start []float64, scale float64) *problem {
	return &problem{scale, func(at []float64) (all []float64) {
		d := of.deployment(at)
		for _, i := range rows {
			predicted, err := f.predict(i, d)
			if err != nil {
				return nil
			}
			values := &f.rows[i].Values
			for m, weight := range weights {
				if Metric(m) == RequestThroughput && values[OutputThroughput] == 0 {
					weight = 1
				}
				if weight > 0 && values[m] > 0 {
					all = append(all, weight*math.Log(max(predicted[m], 1e-6)/values[m]))
				}
			}
		}
		for i := range at {
			all = append(all, priorWeight*(at[i]-start[i]))
		}
		return all
	}}
}

// predict predicts a row. Fits to fewer rows begin at the optimum of all, so many
// predictions are asked for again.
func (f *fitter) predict(row int, d engine.Deployment) (Values, error) {
	decode := engine.Costs{}
	if d.DecodeEngine != nil {
		decode = d.DecodeEngine.Costs
	}
	key := fmt.Sprint(row, d.Latency, d.Transfer, d.Engine.MaxBatchedTokens, d.Engine.Costs, decode)
	if v, found := f.known.Load(key); found {
		return v.(Values), nil
	}
	v, err := f.loads[row].simulate(d)
	if err == nil {
		f.known.Store(key, v)
	}
	return v, err
}

// result predicts all rows with the fitted deployment, and those that a fold leaves out
// with a fit to the others.
func (f *fitter) result(ctx context.Context, best solution, all []int) (*Result, error) {
	r := &Result{Deployment: best.deployment(best.at), Rows: f.rows, Estimates: best.estimates(best.at)}
	for _, i := range all {
		row := &r.Rows[i]
		var err error
		if row.Predicted, err = f.predict(i, r.Deployment); err != nil {
			return nil, fmt.Errorf("fit: predicting %s: %w", row.Name, err)
		}
		r.Range.include(&row.Measurement, engines(&r.Deployment))
	}
	for _, left := range f.folds(all) {
		kept := slices.DeleteFunc(slices.Clone(all), func(i int) bool { return slices.Contains(left, i) })
		s, enough := f.refit(ctx, best, kept)
		if !enough {
			continue
		}
		d := s.deployment(s.at)
		for _, i := range left {
			if v, err := f.predict(i, d); err == nil {
				r.Rows[i].HeldOut = append(r.Rows[i].HeldOut, v)
			}
		}
		for _, other := range s.estimates(s.at) {
			if i := slices.IndexFunc(r.Estimates, func(e Estimate) bool { return e.Name == other.Name }); i >= 0 {
				e := &r.Estimates[i]
				e.Low, e.High = min(e.Low, other.Value), max(e.High, other.Value)
			}
		}
	}
	r.Errors = summarise(r.Rows)
	r.Notes = notes(r.Rows)
	return r, ctx.Err()
}

// folds returns the rows to leave out at a time: those of about one shape, and those of a
// load.
func (f *fitter) folds(rows []int) (folds [][]int) {
	for _, key := range []func(l *Load) [2]float64{
		func(l *Load) [2]float64 {
			// Lengths that differ by less than a third are hardly different shapes.
			about := func(n int) float64 { return math.Round(2 * math.Log2(float64(n))) }
			return [2]float64{about(l.ISL), about(l.OSL)}
		},
		func(l *Load) [2]float64 { return [2]float64{float64(l.Concurrency), l.Rate} },
	} {
		at := map[[2]float64]int{}
		for _, i := range rows {
			k := key(&f.rows[i].Load)
			if _, found := at[k]; !found {
				at[k] = len(folds)
				folds = append(folds, nil)
			}
			folds[at[k]] = append(folds[at[k]], i)
		}
	}
	return folds
}

// refit returns the fit to fewer rows, from the optimum of all, unless they are too few.
// Its decode table has entries only for the loads of these rows.
func (f *fitter) refit(ctx context.Context, full solution, rows []int) (s solution, enough bool) {
	s = full
	s.at = slices.Clone(full.at[:len(full.at)-len(full.knots)])
	if len(rows) > 0 && full.knots != nil {
		s.knots = decodeKnots(f.measurements(rows), engines(&s.template))
	}
	before := 0.0
	for _, n := range s.knots {
		value := max(full.entry(n), 1.001*before)
		s.at, before = append(s.at, math.Log(value-before)), value
	}
	if f.independent(rows) < len(s.at) {
		return s, false
	}
	s.at, s.loss = f.problem(s.form, rows, s.at, fineScale).solve(ctx, s.at, foldIterations)
	return s, true
}

// entry returns the cost of the decode table at a number of sequences.
func (s *solution) entry(n int) (cost float64) {
	differences, before := s.at[len(s.at)-len(s.knots):], 1
	for i, knot := range s.knots {
		difference := math.Exp(differences[i])
		if knot >= n {
			return cost + difference*float64(n-before)/float64(knot-before)
		}
		cost, before = cost+difference, knot
	}
	return cost
}
