package fit

import (
	"context"
	"math"
	"runtime"
	"sync"

	"gonum.org/v1/gonum/mat"
)

// problem is a bounded nonlinear least-squares problem. residuals must be safe for
// concurrent use; it returns nil for a point that cannot be evaluated.
type problem struct {
	low, high []float64
	scale     float64 // residuals well above it count less
	residuals func(at []float64) []float64
}

// solution is a local minimum.
type solution struct {
	at        []float64
	residuals []float64
	jacobian  *mat.Dense // rows: residuals
	loss      float64
}

// weight returns the square root of the weight of a residual under Cauchy's loss.
func (p *problem) weight(r float64) float64 {
	x := r / p.scale
	return 1 / math.Sqrt(1+x*x)
}

// loss returns Cauchy's loss.
func (p *problem) loss(residuals []float64) (sum float64) {
	if residuals == nil {
		return math.Inf(1)
	}
	for _, r := range residuals {
		x := r / p.scale
		sum += math.Log1p(x * x)
	}
	return sum * p.scale * p.scale
}

// clamp moves a point into the bounds.
func (p *problem) clamp(at []float64) {
	for i := range at {
		at[i] = min(max(at[i], p.low[i]), p.high[i])
	}
}

// differences are the steps of numerical derivatives. The residuals jump where a request
// just misses a step of an engine: where one length of differences finds no way down,
// another may.
var differences = []float64{0.05, 0.1, 0.02}

// dampings is the number of damping factors tried at once.
const dampings = 3

// solve is Levenberg's and Marquardt's method with reweighted residuals.
func (p *problem) solve(ctx context.Context, start []float64, iterations int) solution {
	at := append([]float64(nil), start...)
	p.clamp(at)
	s := solution{at: at, residuals: p.residuals(at)}
	s.loss = p.loss(s.residuals)
	lambda, still, steps := 1e-2, 0, 0
	for i := 0; i < iterations && ctx.Err() == nil && s.residuals != nil; i++ {
		s.jacobian = p.jacobian(s.at, s.residuals, differences[steps%len(differences)])
		before := s.loss
		for lambda < 1e8 {
			// Several damping factors at once: one evaluation each.
			points := make([][]float64, dampings)
			for k := range points {
				points[k] = p.stepFrom(s, lambda*math.Pow(10, float64(k)))
			}
			results := p.evaluate(points)
			best := -1
			for k, r := range results {
				if l := p.loss(r); l < s.loss {
					s.at, s.residuals, s.loss, best = points[k], r, l, k
				}
			}
			if best >= 0 {
				lambda = max(lambda*math.Pow(10, float64(best)-1), 1e-6)
				break
			}
			lambda *= math.Pow(10, float64(len(points)))
		}
		if before-s.loss > 1e-3*before {
			still = 0
			continue
		}
		if still++; still == len(differences) {
			break
		}
		lambda, steps = 1e-2, steps+1
	}
	return s
}

// stepFrom returns the damped step from a solution.
func (p *problem) stepFrom(s solution, lambda float64) []float64 {
	n := len(s.at)
	normal, gradient := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for row, r := range s.residuals {
		w := p.weight(r)
		w *= w
		for i := range n {
			ji := s.jacobian.At(row, i)
			gradient.SetVec(i, gradient.AtVec(i)-w*ji*r)
			for j := i; j < n; j++ {
				normal.SetSym(i, j, normal.At(i, j)+w*ji*s.jacobian.At(row, j))
			}
		}
	}
	for i := range n {
		normal.SetSym(i, i, normal.At(i, i)*(1+lambda)+1e-9)
	}
	var factor mat.Cholesky
	delta := mat.NewVecDense(n, nil)
	at := append([]float64(nil), s.at...)
	if !factor.Factorize(normal) || factor.SolveVecTo(delta, gradient) != nil {
		return at
	}
	for i := range at {
		at[i] += min(max(delta.AtVec(i), -1.5), 1.5)
	}
	p.clamp(at)
	return at
}

// jacobian returns the derivatives by differences.
func (p *problem) jacobian(at, residuals []float64, h float64) *mat.Dense {
	points := make([][]float64, len(at))
	for i := range at {
		points[i] = append([]float64(nil), at...)
		if at[i]+h > p.high[i] {
			points[i][i] -= h
		} else {
			points[i][i] += h
		}
	}
	j := mat.NewDense(len(residuals), len(at), nil)
	for i, r := range p.evaluate(points) {
		if r == nil {
			continue
		}
		for row := range r {
			j.Set(row, i, (r[row]-residuals[row])/(points[i][i]-at[i]))
		}
	}
	return j
}

// evaluate returns the residuals at several points, computed in parallel.
func (p *problem) evaluate(points [][]float64) [][]float64 {
	results := make([][]float64, len(points))
	var wg sync.WaitGroup
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range points {
		limit <- struct{}{}
		wg.Go(func() {
			results[i] = p.residuals(points[i])
			<-limit
		})
	}
	wg.Wait()
	return results
}
