package fit

import (
	"context"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"
)

// problem is a least-squares problem with Cauchy's loss.
type problem struct {
	scale     float64                      // of residuals from which they count less
	residuals func(at []float64) []float64 // safe for concurrent use
}

// loss returns Cauchy's loss.
func (p *problem) loss(residuals []float64) (sum float64) {
	for _, r := range residuals {
		sum += math.Log1p(r * r / (p.scale * p.scale))
	}
	return sum * p.scale * p.scale
}

// differences are the steps of numerical derivatives. The residuals jump where a request
// just misses a step of an engine: where one length of differences finds no way down,
// another may.
var differences = []float64{0.05, 0.1, 0.02}

// dampings are the factors of the damping that are tried at once.
var dampings = []float64{0.1, 1, 10, 100}

// solve returns a minimum near a point by Levenberg's and Marquardt's method with
// reweighted residuals.
func (p *problem) solve(ctx context.Context, at []float64, iterations int) (minimum []float64, least float64) {
	residuals := p.residuals(at)
	least = p.loss(residuals)
	damping, failures := 0.1, 0
	for i := 0; i < iterations && failures < len(differences) && ctx.Err() == nil; i++ {
		normal, descent := p.linearise(at, residuals, differences[failures])
		points := make([][]float64, len(dampings))
		for i, factor := range dampings {
			points[i] = step(at, normal, descent, damping*factor)
		}
		before, best := least, 1.0
		for i, r := range p.evaluate(points) {
			if l := p.loss(r); l < least {
				at, residuals, least, best = points[i], r, l, dampings[i]
			}
		}
		damping = min(max(damping*best, 1e-4), 1e4)
		failures++
		if before-least >= 1e-3*before {
			failures = 0
		}
	}
	return at, least
}

// linearise returns the normal matrix and the direction of descent at a point, with
// derivatives from differences of length h.
func (p *problem) linearise(at, residuals []float64, h float64) (*mat.SymDense, *mat.VecDense) {
	points := make([][]float64, len(at))
	for i := range at {
		points[i] = slices.Clone(at)
		points[i][i] += h
	}
	jacobian, weighted := mat.NewDense(len(at), len(residuals), nil), mat.NewVecDense(len(residuals), nil)
	moved := p.evaluate(points)
	for row, r := range residuals {
		weight := 1 / math.Sqrt(1+r*r/(p.scale*p.scale))
		weighted.SetVec(row, -weight*r)
		for i := range at {
			jacobian.Set(i, row, weight*(moved[i][row]-r)/(points[i][i]-at[i]))
		}
	}
	normal, descent := &mat.SymDense{}, &mat.VecDense{}
	normal.SymOuterK(1, jacobian)
	descent.MulVec(jacobian, weighted)
	return normal, descent
}

// step returns the point after a damped step.
func step(at []float64, normal *mat.SymDense, descent *mat.VecDense, damping float64) []float64 {
	damped := mat.NewSymDense(len(at), nil)
	damped.CopySym(normal)
	for i := range at {
		damped.SetSym(i, i, normal.At(i, i)*(1+damping)+1e-9)
	}
	var factor mat.Cholesky
	var delta mat.VecDense
	if !factor.Factorize(damped) || factor.SolveVecTo(&delta, descent) != nil {
		return at
	}
	const longest = 1.5
	next := slices.Clone(at)
	for i := range next {
		next[i] += min(max(delta.AtVec(i), -longest), longest)
	}
	return next
}

// evaluate returns the residuals at several points.
func (p *problem) evaluate(points [][]float64) [][]float64 {
	results := make([][]float64, len(points))
	var working sync.WaitGroup
	for i := range points {
		working.Go(func() { results[i] = p.residuals(points[i]) })
	}
	working.Wait()
	return results
}
