package fit

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"moontide/replay/sim/engine"
)

// problem is a least-squares problem with Cauchy's loss, whose coordinates are bounded.
// residuals must be safe for concurrent use; it returns nil for a point that cannot be
// evaluated.
type problem struct {
	scale     float64 // of residuals from which they count less
	residuals func(at []float64) []float64
}

// Bounds of the coordinates, which are logarithms of costs: 10 ps and 10 s.
var low, high = math.Log(float64(10 * engine.Picosecond)), math.Log(float64(10 * engine.Second))

// loss returns Cauchy's loss.
func (p *problem) loss(residuals []float64) (sum float64) {
	if residuals == nil {
		return math.Inf(1)
	}
	for _, r := range residuals {
		sum += math.Log1p(r * r / (p.scale * p.scale))
	}
	return sum * p.scale * p.scale
}

// clamp moves a point into the bounds.
func clamp(at []float64) []float64 {
	for i := range at {
		at[i] = min(max(at[i], low), high)
	}
	return at
}

// differences are the steps of numerical derivatives. The residuals jump where a request
// just misses a step of an engine: where one length of differences finds no way down,
// another may.
var differences = []float64{0.05, 0.1, 0.02}

// dampings are the factors of the damping that are tried at once.
var dampings = []float64{0.1, 1, 10, 100}

// solve returns a minimum near start by Levenberg's and Marquardt's method with
// reweighted residuals.
func (p *problem) solve(ctx context.Context, start []float64, iterations int) (at []float64, least float64) {
	at = clamp(slices.Clone(start))
	residuals := p.residuals(at)
	least = p.loss(residuals)
	damping, failures := 0.1, 0
	for range iterations {
		if residuals == nil || ctx.Err() != nil || failures == len(differences) {
			break
		}
		derivatives := p.derivatives(at, residuals, differences[failures])
		points := make([][]float64, len(dampings))
		for i, factor := range dampings {
			points[i] = p.step(at, residuals, derivatives, damping*factor)
		}
		before, best := least, 1.0
		for i, r := range p.evaluate(points) {
			if l := p.loss(r); l < least {
				at, residuals, least, best = points[i], r, l, dampings[i]
			}
		}
		damping = min(max(damping*best, 1e-4), 1e4)
		if before-least < 1e-3*before {
			failures++
		} else {
			failures = 0
		}
	}
	return at, least
}

// step returns the damped step from a point.
func (p *problem) step(at, residuals []float64, derivatives [][]float64, damping float64) []float64 {
	n := len(at)
	normal, gradient := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for row, r := range residuals {
		weight := 1 / (1 + r*r/(p.scale*p.scale))
		for i := range n {
			slope := weight * derivatives[i][row]
			gradient.SetVec(i, gradient.AtVec(i)-slope*r)
			for j := i; j < n; j++ {
				normal.SetSym(i, j, normal.At(i, j)+slope*derivatives[j][row])
			}
		}
	}
	for i := range n {
		normal.SetSym(i, i, normal.At(i, i)*(1+damping)+1e-9)
	}
	next := slices.Clone(at)
	var factor mat.Cholesky
	delta := mat.NewVecDense(n, nil)
	if !factor.Factorize(normal) || factor.SolveVecTo(delta, gradient) != nil {
		return next
	}
	const longest = 1.5
	for i := range next {
		next[i] += min(max(delta.AtVec(i), -longest), longest)
	}
	return clamp(next)
}

// derivatives returns those of all residuals by each coordinate.
func (p *problem) derivatives(at, residuals []float64, h float64) [][]float64 {
	points := make([][]float64, len(at))
	for i := range at {
		points[i] = slices.Clone(at)
		points[i][i] += h
		if points[i][i] > high {
			points[i][i] -= 2 * h
		}
	}
	all := p.evaluate(points)
	for i := range all {
		if all[i] == nil {
			all[i] = slices.Clone(residuals)
		}
		for row := range residuals {
			all[i][row] = (all[i][row] - residuals[row]) / (points[i][i] - at[i])
		}
	}
	return all
}

// evaluate returns the residuals at several points.
func (p *problem) evaluate(points [][]float64) [][]float64 {
	results := make([][]float64, len(points))
	var working sync.WaitGroup
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range points {
		limit <- struct{}{}
		working.Go(func() {
			results[i] = p.residuals(points[i])
			<-limit
		})
	}
	working.Wait()
	return results
}
