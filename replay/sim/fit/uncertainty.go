package fit

import (
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"moontide/replay/sim/engine"
)

// noiseFloor is the least relative standard deviation that measurements are taken to
// have.
const noiseFloor = 0.005

// covariance returns the covariance of the logarithms of the free parameters from the
// Jacobian at the solution, and the standard deviation of a residual.
func (a *attempt) covariance() (covariance *mat.SymDense, noise float64, freedom int) {
	n := len(a.at)
	jacobian := a.problem.jacobian(a.at, a.residuals)
	information := mat.NewSymDense(n, nil)
	rss, weight, rows := 0.0, 0.0, len(a.residuals)-n // the last n are priors
	for row, r := range a.residuals {
		w := a.problem.weight(r)
		w *= w
		if row < rows {
			rss += w * r * r
			weight += w
		}
		for i := range n {
			for j := i; j < n; j++ {
				information.SetSym(i, j, information.At(i, j)+w*jacobian.At(row, i)*jacobian.At(row, j))
			}
		}
	}
	freedom = max(rows-n, 1)
	noise = max(math.Sqrt(rss/max(weight*float64(freedom)/float64(rows), 1)), noiseFloor)
	covariance = mat.NewSymDense(n, nil)
	var factor mat.Cholesky
	if factor.Factorize(information) && factor.InverseTo(covariance) == nil {
		covariance.ScaleSym(noise*noise, covariance)
		return covariance, noise, freedom
	}
	for i := range n {
		covariance.SetSym(i, i, 100) // nothing is known
	}
	return covariance, noise, freedom
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
