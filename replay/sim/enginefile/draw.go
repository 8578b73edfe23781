package enginefile

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/mat"

	"moontide/replay/sim/engine"
)

const decodePrefix = "decode-engine."

// scaleTimes multiplies every time of d by the factor of its name, as in
// [Covariance].
func scaleTimes(d *engine.Deployment, factor func(name string) float64) {
	for _, p := range engine.Parameters {
		scaleField(p.Field(d), p.Name, factor)
		if p.OfEngine != nil && d.DecodeEngine != nil {
			scaleField(p.OfEngine(d.DecodeEngine), decodePrefix+p.Name, factor)
		}
	}
}

func scaleField(field any, name string, factor func(name string) float64) {
	switch field := field.(type) {
	case *engine.Cost:
		*field = scaled(*field, factor(name))
	case *time.Duration:
		*field = scaled(engine.CostOf(*field), factor(name)).Duration()
	case *engine.DecodeTable:
		// Scaling the differences keeps the entries in ascending order.
		before, now := engine.Cost(0), engine.Cost(0)
		for i := range *field {
			entry := &(*field)[i]
			difference := entry.Cost - before
			before = entry.Cost
			now += scaled(difference, factor(fmt.Sprintf("%s.%d", name, entry.Sequences)))
			entry.Cost = min(now, engine.Hour)
		}
	}
}

// scaled returns a multiple of a cost that is a valid cost.
func scaled(c engine.Cost, factor float64) engine.Cost {
	return engine.Cost(math.Round(min(max(float64(c)*factor, 0), float64(engine.Hour))))
}

// maxFactor limits how far a draw is from the estimate: the interval of a parameter that
// is not identified spans orders of magnitude.
const maxFactor = 10

// Draw returns a deployment whose fitted parameters are drawn from the uncertainty of
// the fit: a multivariate normal distribution of their logarithms. It fails if the
// deployment was not fitted.
func (f *File) Draw(random *rand.Rand) (engine.Deployment, error) {
	d := f.Deployment()
	if f.Fit == nil {
		return d, errors.New("the deployment was not fitted: it has no uncertainty to draw from")
	}
	deviations, err := f.Fit.Covariance.deviations(random)
	if err != nil {
		return d, err
	}
	factors := map[string]float64{}
	for i, name := range f.Fit.Covariance.Parameters {
		factors[name] = min(max(math.Exp(deviations[i]), 1.0/maxFactor), maxFactor)
	}
	scaleTimes(&d, func(name string) float64 {
		if factor, drawn := factors[name]; drawn {
			return factor
		}
		return 1
	})
	return d, d.Validate()
}

// deviations draws a deviation of the logarithm of each parameter.
func (c *Covariance) deviations(random *rand.Rand) ([]float64, error) {
	n := len(c.Matrix)
	if n == 0 {
		return nil, nil
	}
	covariance := mat.NewSymDense(n, nil)
	for i, row := range c.Matrix {
		for j := range i + 1 {
			covariance.SetSym(i, j, row[j])
		}
	}
	// Eigenvalues, unlike a Cholesky decomposition, work if a parameter is a
	// combination of others.
	var eigen mat.EigenSym
	if !eigen.Factorize(covariance, true) {
		return nil, errors.New("the covariance of the fit has no eigenvalues")
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	independent := mat.NewVecDense(n, nil)
	for i, v := range eigen.Values(nil) {
		independent.SetVec(i, math.Sqrt(max(v, 0))*random.NormFloat64())
	}
	var deviations mat.VecDense
	deviations.MulVec(&vectors, independent)
	return deviations.RawVector().Data, nil
}
