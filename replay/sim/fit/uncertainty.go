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

// smoothStep is the difference of logarithms for derivatives that count for intervals. A
// request that just misses a step makes metrics jump; a longer difference averages over
// such jumps.
const smoothStep = 0.15

// smoothJacobian returns derivatives over longer differences to both sides.
func (a *attempt) smoothJacobian() *mat.Dense {
	points := make([][]float64, 2*len(a.at))
	for i := range points {
		points[i] = slices.Clone(a.at)
		points[i][i/2] += smoothStep * float64(1-2*(i%2))
	}
	results := a.problem.evaluate(points)
	jacobian := mat.NewDense(len(a.residuals), len(a.at), nil)
	for i := range a.at {
		up, down := results[2*i], results[2*i+1]
		for row := range a.residuals {
			if up != nil && down != nil {
				jacobian.Set(row, i, (up[row]-down[row])/(2*smoothStep))
			}
		}
	}
	return jacobian
}

// covariance returns the covariance of the logarithms of the free parameters, the
// standard deviation of a residual, and the degrees of freedom. With A the information
// of the weighted Jacobian J, it is inv(A) M inv(A), where M holds the noise of values by
// themselves and that of runs: the values of a run are off together.
func (a *attempt) covariance(effects []runEffect) (covariance *mat.SymDense, noise float64, freedom int) {
	n, rows := len(a.at), len(effects)
	jacobian := a.smoothJacobian()
	information, meat := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
	byRun := map[int]*mat.VecDense{}
	rss, weight := 0.0, 0.0
	for row, r := range a.residuals {
		w := a.problem.weight(r)
		w *= w
		gradient := mat.NewVecDense(n, mat.Row(nil, row, jacobian))
		information.SymRankOne(information, w, gradient)
		if row >= rows { // a prior
			continue
		}
		rss += w * r * r
		weight += w
		effect := effects[row]
		if byRun[effect.run] == nil {
			byRun[effect.run] = mat.NewVecDense(n, nil)
		}
		byRun[effect.run].AddScaledVec(byRun[effect.run], w*effect.weight, gradient)
	}
	freedom = max(rows-n, 1)
	noise = max(math.Sqrt(rss/max(weight*float64(freedom)/float64(rows), 1)), noiseFloor)
	meat.ScaleSym(noise*noise, information)
	for _, run := range slices.Sorted(maps.Keys(byRun)) {
		meat.SymRankOne(meat, runNoiseFloor*runNoiseFloor, byRun[run])
	}
	covariance = mat.NewSymDense(n, nil)
	inverse := mat.NewSymDense(n, nil)
	var factor mat.Cholesky
	if !factor.Factorize(information) || factor.InverseTo(inverse) != nil {
		for i := range n {
			covariance.SetSym(i, i, 100) // nothing is known
		}
		return covariance, noise, freedom
	}
	var half, full mat.Dense
	half.Mul(inverse, meat)
	full.Mul(&half, inverse)
	for i := range n {
		for j := i; j < n; j++ {
			covariance.SetSym(i, j, (full.At(i, j)+full.At(j, i))/2)
		}
	}
	return covariance, noise, freedom
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
func (a *attempt) estimates(covariance *mat.SymDense, freedom int) (all []Estimate) {
	quantile := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(freedom)}.Quantile(0.975)
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
		half := quantile * math.Sqrt(max(mat.Inner(gradient, covariance, gradient), 0))
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
