package fit

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"moontide/replay/sim/engine"
)

// Least relative standard deviations that measurements are taken to have: of a value by
// itself, and of all values of a run together: published runs of one engine repeat
// throughput to 0.4 to 3.3 %.
const (
	noiseFloor    = 0.005
	runNoiseFloor = 0.015
)

// Lengths of the differences, of logarithms, for derivatives that count for intervals.
// A request that just misses a step makes metrics jump, which short differences take for
// information. So differences are as long as what they measure is uncertain, up to where
// a parameter is not identified anyway.
const (
	firstDifference    = 0.15
	shortestDifference = 0.1
	longestDifference  = 0.4
	differenceRounds   = 2
)

// secants are the derivatives of residuals around a solution.
type secants struct {
	jacobian  *mat.Dense
	roughness []float64 // variance of each residual about a straight line
	best      []float64 // the point with the least loss
	loss      float64   // at best
}

// along returns derivatives by differences along orthogonal axes, the columns of a
// matrix.
func (a *attempt) along(axes mat.Matrix, lengths []float64) secants {
	n := len(a.at)
	points := make([][]float64, 2*n)
	for i := range points {
		points[i] = slices.Clone(a.at)
		for k := range n {
			points[i][k] += lengths[i/2] * axes.At(k, i/2) * float64(1-2*(i%2))
		}
		a.problem.clamp(points[i])
	}
	results := a.problem.evaluate(points)
	s := secants{jacobian: mat.NewDense(len(a.residuals), n, nil), roughness: make([]float64, len(a.residuals)), best: a.at, loss: a.loss}
	slopes := mat.NewDense(len(a.residuals), n, nil)
	for i := range n {
		up, down := results[2*i], results[2*i+1]
		if up == nil || down == nil {
			continue
		}
		for row, r := range a.residuals {
			slopes.Set(row, i, (up[row]-down[row])/(2*lengths[i]))
			bend := up[row] + down[row] - 2*r
			s.roughness[row] += bend * bend / 6 / float64(n)
		}
	}
	for i, r := range results {
		if l := a.problem.loss(r); l < s.loss {
			s.best, s.loss = points[i], l
		}
	}
	s.jacobian.Mul(slopes, axes.T())
	return s
}

// explore returns the uncertainty of a solution, and the point with the least loss that
// was met.
func (a *attempt) explore(effects []runEffect) (u uncertainty, best []float64, loss float64) {
	n := len(a.at)
	axes, lengths := mat.NewDense(n, n, nil), make([]float64, n)
	for i := range n {
		axes.Set(i, i, 1)
		lengths[i] = firstDifference
	}
	best, loss = a.at, a.loss
	for range differenceRounds {
		s := a.along(axes, lengths)
		if s.loss < loss {
			best, loss = s.best, s.loss
		}
		u = a.covariance(effects, s)
		var eigen mat.EigenSym
		if !eigen.Factorize(u.covariance, true) {
			break
		}
		eigen.VectorsTo(axes)
		for i, variance := range eigen.Values(nil) {
			lengths[i] = min(max(math.Sqrt(max(variance, 0)), shortestDifference), longestDifference)
		}
	}
	return u, best, loss
}

// uncertainty is that of the logarithms of the free parameters.
type uncertainty struct {
	covariance *mat.SymDense
	noise      float64 // standard deviation of a residual
	freedom    int
}

// covariance returns, with A the information of the weighted Jacobian, inv(A) M inv(A),
// where M holds the noise of values by themselves, what the search may be off because
// metrics jump, and the noise of runs: the values of a run are off together.
func (a *attempt) covariance(effects []runEffect, s secants) uncertainty {
	n, rows := len(a.at), len(effects)
	noise := a.noise(rows)
	information, meat := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
	byRun := map[int]*mat.VecDense{}
	for row, r := range a.residuals {
		w := a.problem.weight(r)
		w *= w
		gradient := mat.NewVecDense(n, mat.Row(nil, row, s.jacobian))
		information.SymRankOne(information, w, gradient)
		meat.SymRankOne(meat, w*(noise*noise+s.roughness[row]), gradient)
		if row >= rows { // a prior
			continue
		}
		effect := effects[row]
		if byRun[effect.run] == nil {
			byRun[effect.run] = mat.NewVecDense(n, nil)
		}
		byRun[effect.run].AddScaledVec(byRun[effect.run], w*effect.weight, gradient)
	}
	for _, run := range slices.Sorted(maps.Keys(byRun)) {
		meat.SymRankOne(meat, runNoiseFloor*runNoiseFloor, byRun[run])
	}
	covariance := mat.NewSymDense(n, nil)
	inverse := mat.NewSymDense(n, nil)
	u := uncertainty{covariance, noise, max(rows-n, 1)}
	var factor mat.Cholesky
	if !factor.Factorize(information) || factor.InverseTo(inverse) != nil {
		for i := range n {
			covariance.SetSym(i, i, 100) // nothing is known
		}
		return u
	}
	var half, full mat.Dense
	half.Mul(inverse, meat)
	full.Mul(&half, inverse)
	for i := range n {
		for j := i; j < n; j++ {
			covariance.SetSym(i, j, (full.At(i, j)+full.At(j, i))/2)
		}
	}
	return u
}

// disaggregatedSpread multiplies the standard deviations for disaggregated deployments,
// whose requests move in waves: many minima that the search does not meet fit as well.
// With it the intervals cover the costs of random engines as often as they say.
const disaggregatedSpread = 1.5

// widen adds the spread of other minima to the covariance, each with its likelihood
// relative to that of the solution: the measurements hardly tell apart those with nearly
// equal losses.
func (a *attempt) widen() {
	variance := a.uncertainty.noise*a.uncertainty.noise + runNoiseFloor*runNoiseFloor
	likelihood := func(s solution) float64 {
		return math.Exp((a.loss - a.problem.loss(s.residuals)) / (2 * variance))
	}
	sum := 1.0
	for _, s := range a.others {
		sum += likelihood(s)
	}
	for _, s := range a.others {
		distance := mat.NewVecDense(len(a.at), slices.Clone(s.at))
		distance.SubVec(distance, mat.NewVecDense(len(a.at), a.at))
		a.uncertainty.covariance.SymRankOne(a.uncertainty.covariance, likelihood(s)/sum, distance)
	}
	if a.deployment.Disaggregated() {
		a.uncertainty.covariance.ScaleSym(disaggregatedSpread*disaggregatedSpread, a.uncertainty.covariance)
	}
}

// noise returns the standard deviation of the residuals of measured values, which are
// the first ones.
func (a *attempt) noise(values int) float64 {
	rss, weight := 0.0, 0.0
	for _, r := range a.residuals[:values] {
		w := a.problem.weight(r)
		rss += w * w * r * r
		weight += w * w
	}
	freedom := max(values-len(a.at), 1)
	return max(math.Sqrt(rss/max(weight*float64(freedom)/float64(values), 1)), noiseFloor)
}

// runEffect is what a run that is slower by a small share does to a residual.
type runEffect struct {
	run    int
	weight float64
}

// identifiedWithin is the largest half-width of an interval, relative to the estimate,
// of a parameter that is called identified.
const identifiedWithin = 0.5

// estimates returns all parameters with their intervals.
func (a *attempt) estimates() (all []Estimate) {
	quantile := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(a.uncertainty.freedom)}.Quantile(0.975)
	index := map[string]int{}
	for i, p := range a.free {
		index[p.name] = i
	}
	for _, p := range parametersOf(a.deployment) {
		e := Estimate{Name: p.name, Value: p.get(&a.deployment)}
		gradient := mat.NewVecDense(len(a.at), nil)
		if i, fitted := index[p.name]; fitted {
			e.Fitted = true
			gradient.SetVec(i, 1)
		}
		if p.table != nil {
			e.Value = p.table(&a.deployment)[p.entry].Cost
			a.entryGradient(p, e.Value, gradient)
		}
		half := quantile * math.Sqrt(max(mat.Inner(gradient, a.uncertainty.covariance, gradient), 0))
		e.Low, e.High = scaled(e.Value, math.Exp(-half)), scaled(e.Value, math.Exp(half))
		e.Identified = e.Fitted && half <= math.Log1p(identifiedWithin)
		all = append(all, e)
	}
	return all
}

// entryGradient sets the derivatives of the logarithm of an entry of a decode table,
// which is the sum of the differences up to it.
func (a *attempt) entryGradient(p parameter, value engine.Cost, gradient *mat.VecDense) {
	for i, q := range a.free {
		gradient.SetVec(i, 0)
		if q.table != nil && q.entry <= p.entry && value > 0 {
			gradient.SetVec(i, float64(q.get(&a.deployment))/float64(value))
		}
	}
}

// scaled returns a multiple of a cost, at most an hour.
func scaled(c engine.Cost, factor float64) engine.Cost {
	return engine.Cost(math.Round(min(float64(c)*factor, float64(engine.Hour))))
}
