package fit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"moontide/replay/sim/engine"
)

// Fit estimates the costs of a deployment from measurements. It fails with a
// [RefusedError] if they contradict themselves. The same measurements and options give
// the same result.
func Fit(ctx context.Context, measurements []Measurement, options Options) (*Result, error) {
	f := &fitter{options: options, rows: Screen(measurements)}
	if err := f.selectRows(); err != nil {
		return nil, err
	}
	f.prepare()
	best, compared, err := f.best(ctx)
	if err != nil {
		return nil, err
	}
	return f.result(best, compared)
}

// fitter is a fit under way.
type fitter struct {
	options Options
	rows    []Row
	loads   []preparedLoad // of the rows
}

// fitted returns the measurements that are fitted.
func (f *fitter) fitted() (all []Measurement) {
	for _, r := range f.rows {
		if r.Role == Fitted {
			all = append(all, r.Measurement)
		}
	}
	return all
}

func (f *fitter) prepare() {
	blockSize := f.options.Template.Engine.WithDefaults().BlockSize
	for _, r := range f.rows {
		f.loads = append(f.loads, prepare(r.Load, blockSize, f.options.Seed))
	}
}

// attempt is a local minimum of a structure.
type attempt struct {
	deployment engine.Deployment // with the costs of at
	free       []parameter
	problem    *problem
	solution
	others      []solution // minima that the search found besides
	uncertainty uncertainty
}

// Iterations of the search: a few for each structure, more for the best ones.
const (
	fewIterations  = 5
	manyIterations = 20
	finalists      = 3
	defaultStarts  = 2
	polishings     = 2
	hopeless       = 3 // times the best loss, after few iterations
)

// best returns the best attempt of all structures and starting points.
func (f *fitter) best(ctx context.Context) (best attempt, compared []Structure, err error) {
	guesses := []engine.Deployment{f.options.Template}
	if f.options.Refit == nil {
		guesses = nil
		for _, s := range structures(f.options.Template, f.fitted()) {
			guesses = append(guesses, firstGuess(s.Deployment, s.linkBound, f.fitted()))
		}
	}
	var attempts []attempt
	for _, guess := range guesses {
		a, err := f.begin(guess)
		if err != nil {
			return best, nil, err
		}
		a.solution = a.problem.solve(ctx, a.at, fewIterations)
		attempts = append(attempts, a)
	}
	byLoss := func(a, b attempt) int { return cmp.Compare(a.loss, b.loss) }
	slices.SortStableFunc(attempts, byLoss)
	for i := range attempts {
		// What the best structure leaves unexplained sets the scale for all.
		attempts[i].rescale(fineScale(attempts[0].residuals))
	}
	for i := range attempts[:min(finalists, len(attempts))] {
		a := &attempts[i]
		if a.loss < hopeless*attempts[0].loss {
			a.solution = a.problem.solve(ctx, a.at, manyIterations)
		}
	}
	slices.SortStableFunc(attempts, byLoss)
	if attempts[0], err = f.extend(ctx, attempts[0]); err != nil {
		return best, nil, err
	}
	for _, other := range attempts[1:] {
		if describe(other.deployment) == describe(attempts[0].deployment) && len(other.free) == len(attempts[0].free) {
			attempts[0].others = append(attempts[0].others, other.solution)
		}
	}
	f.restart(ctx, &attempts[0])
	f.hop(ctx, &attempts[0])
	f.polish(ctx, &attempts[0])
	for _, a := range attempts {
		compared = append(compared, Structure{describe(a.deployment), a.loss})
	}
	best = attempts[0]
	if math.IsInf(best.loss, 1) {
		return best, nil, fmt.Errorf("fit: no deployment can be simulated under these loads: check the template's limits")
	}
	best.deployment = with(best.deployment, best.free, best.at)
	return best, compared, ctx.Err()
}

// Scales of the loss. Far from a minimum all residuals are large, and a fine scale
// would give up on most of them.
const (
	coarseScale   = 0.4
	smallestScale = 0.03
)

// fineScale returns the scale of the loss that suits residuals: a few robust standard
// deviations.
func fineScale(residuals []float64) float64 {
	var sizes []float64
	for _, r := range residuals {
		sizes = append(sizes, math.Abs(r))
	}
	return min(max(3*median(sizes)/0.6745, smallestScale), coarseScale)
}

// rescale changes the scale of the loss.
func (a *attempt) rescale(scale float64) {
	a.problem.scale = scale
	a.loss = a.problem.loss(a.residuals)
}

// approach returns a rough solution.
func (a *attempt) approach(ctx context.Context, start []float64) solution {
	rough := *a.problem
	rough.scale = coarseScale
	s := rough.solve(ctx, start, fewIterations)
	s.loss = a.problem.loss(s.residuals)
	return s
}

// restart looks for a better minimum from other starting points.
func (f *fitter) restart(ctx context.Context, a *attempt) {
	random := rand.New(rand.NewPCG(f.options.Seed, 0x737461727473)) // "starts"
	center := slices.Clone(a.at)
	for range cmp.Or(f.options.Starts, defaultStarts) - 1 {
		start := slices.Clone(center)
		for k := range start {
			start[k] += 0.7 * random.NormFloat64()
		}
		other := a.approach(ctx, start)
		if other.loss < hopeless*a.loss {
			other = a.problem.solve(ctx, other.at, manyIterations)
		}
		if other.loss < a.loss {
			a.solution, other = other, a.solution
		}
		a.others = append(a.others, other)
	}
}

// Number and length of hops.
const (
	hops     = 3
	hopReach = 0.2
)

// hop looks for better minima near the best one, unless that leaves no more unexplained
// than the noise of any measurement: whether a request just catches a step or misses it
// makes the loss rugged. Fits of disaggregated deployments, whose evaluations take
// longest, gain nothing by it.
func (f *fitter) hop(ctx context.Context, a *attempt) {
	if a.deployment.Disaggregated() {
		return
	}
	random := rand.New(rand.NewPCG(f.options.Seed, 0x686f7073)) // "hops"
	for range hops {
		if a.residuals == nil || floats.Norm(a.residuals, 2) <= runNoiseFloor*math.Sqrt(float64(len(a.residuals))) {
			return
		}
		start := slices.Clone(a.at)
		for k := range start {
			start[k] += hopReach * random.NormFloat64()
		}
		if other := a.problem.solve(ctx, start, manyIterations); other.loss < a.loss {
			a.others = append(a.others, a.solution)
			a.solution = other
		}
	}
}

// polish sets the uncertainty of an attempt. Where the differences for it, which are
// longer than those of the search, meet a better point, the search continues there.
func (f *fitter) polish(ctx context.Context, a *attempt) {
	if a.residuals == nil {
		return
	}
	effects := f.runEffects()
	for i := range polishings {
		u, best, loss := a.explore(effects)
		a.uncertainty = u
		if i == polishings-1 || loss > 0.999*a.loss || ctx.Err() != nil {
			break
		}
		a.solution = a.problem.solve(ctx, best, fewIterations)
	}
	a.widen()
}

// begin returns the problem of fitting the free parameters of a deployment.
func (f *fitter) begin(d engine.Deployment) (a attempt, err error) {
	a.deployment = d
	for _, p := range parametersOf(d) {
		if f.options.Refit != nil && !p.selects(f.options.Refit) || p.selects(f.options.Fixed) {
			continue
		}
		a.free = append(a.free, p)
	}
	if err := f.enough(a.free); err != nil {
		return a, err
	}
	a.problem = &problem{scale: coarseScale}
	for _, p := range a.free {
		a.at = append(a.at, math.Log(max(float64(p.get(&d)), 1)))
		// A cost that is tiny no longer changes anything, and would stay tiny.
		start := min(max(a.at[len(a.at)-1], math.Log(float64(p.low))), math.Log(float64(p.high)))
		a.problem.low = append(a.problem.low, max(math.Log(float64(p.low)), start-reach))
		a.problem.high = append(a.problem.high, min(math.Log(float64(p.high)), start+reach))
	}
	a.problem.clamp(a.at)
	start := slices.Clone(a.at)
	a.problem.residuals = func(at []float64) []float64 { return f.residuals(with(d, a.free, at), at, start) }
	return a, nil
}

// weights of the metrics. Request throughput counts only where output throughput is
// missing.
var weights = [numMetrics]float64{
	OutputThroughput: 1, MeanE2EL: 1, MeanTTFT: 0.8, MeanTPOT: 1, P99E2EL: 0.5, P99TTFT: 0.25, P99TPOT: 0.3,
}

// reach bounds the logarithm of the ratio of a parameter to its first guess.
const reach = 4

// priorWeight pulls parameters to their starting point, so that those on which nothing
// depends stay there.
const priorWeight = 0.003

// residuals returns the weighted logarithms of predicted to measured values, nil if
// the deployment cannot serve a load.
func (f *fitter) residuals(d engine.Deployment, at, start []float64) (all []float64) {
	for i, r := range f.rows {
		if r.Role != Fitted {
			continue
		}
		predicted, _, err := f.loads[i].simulate(d)
		if err != nil {
			return nil
		}
		for m := range numMetrics {
			if w := r.weight(m); w > 0 {
				all = append(all, w*math.Log(max(predicted[m], leastValue)/r.Values[m]))
			}
		}
	}
	for i := range at {
		all = append(all, priorWeight*(at[i]-start[i]))
	}
	return all
}

// leastValue stands for a predicted value that does not exist.
const leastValue = 1e-6

// weight returns the weight of a metric of a row, 0 if it was not measured.
func (r Row) weight(m Metric) float64 {
	switch {
	case r.Values[m] <= 0:
		return 0
	case m == RequestThroughput && r.Values[OutputThroughput] == 0:
		return 1
	}
	return weights[m]
}

// runEffects returns the effect of each run on the residuals, in their order.
func (f *fitter) runEffects() (all []runEffect) {
	for i, r := range f.rows {
		if r.Role != Fitted {
			continue
		}
		for m := range numMetrics {
			w := r.weight(m)
			if m <= OutputThroughput {
				w = -w
			}
			if w != 0 {
				all = append(all, runEffect{i, w})
			}
		}
	}
	return all
}

// enough returns an error if there are fewer values than parameters.
func (f *fitter) enough(free []parameter) error {
	if len(free) == 0 {
		return fmt.Errorf("fit: no parameter to fit: %v names none of them", f.options.Refit)
	}
	values := 0
	rows := f.fitted()
	for _, m := range rows {
		values += m.independent()
	}
	if values < len(free) {
		return fmt.Errorf("fit: %d measurements with %d independent values cannot give %d parameters: measure more loads, at other concurrencies and prompt lengths, or fix parameters", len(rows), values, len(free))
	}
	return nil
}

// independent returns the number of measured means that say different things: in a
// closed loop throughput and E2E latency are the same.
func (m Measurement) independent() (n int) {
	for _, metric := range []Metric{MeanTTFT, MeanTPOT} {
		if m.Values[metric] > 0 {
			n++
		}
	}
	if m.Values[MeanE2EL] > 0 || m.Values[OutputThroughput] > 0 || m.Values[RequestThroughput] > 0 {
		n++
	}
	return min(n, 2+n/3)
}
