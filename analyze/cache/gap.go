package cache

import (
	"math"
	"slices"
)

// Gap is the distance between two LRU curves in block hit rate, 0..1.
type Gap struct {
	Largest float64
	At      int // the smallest capacity in blocks with the largest gap
	// Mean is taken over the logarithm of the capacity, from one block to where
	// both curves are flat, so that each doubling has equal weight.
	Mean float64
}

// GapOf compares two curves at equal capacities in blocks; the traces should have
// the same block size. It is exact: both curves are linear between bends, so the
// largest gap is at a bend and the mean has a closed form.
func GapOf(a, b *Curve) Gap {
	var g Gap
	largest := max(a.Largest(), b.Largest())
	capacities := []int{1, max(largest, 1)}
	for _, c := range []*Curve{a, b} {
		for capacity := range c.Bends() {
			capacities = append(capacities, max(capacity, 1))
		}
	}
	slices.Sort(capacities)
	capacities = slices.Compact(capacities)
	apart := func(capacity int) float64 { return a.At(capacity).Rates().Block - b.At(capacity).Rates().Block }
	before := 0.0
	for i, capacity := range capacities {
		d := apart(capacity)
		if math.Abs(d) > g.Largest {
			g.Largest, g.At = math.Abs(d), capacity
		}
		if i > 0 {
			g.Mean += overLog(float64(capacities[i-1]), float64(capacity), before, d)
		}
		before = d
	}
	if largest <= 1 {
		g.Mean = g.Largest
	} else {
		g.Mean /= math.Log(float64(largest))
	}
	return g
}

// overLog returns the integral over ln x, for x between from and to, of the absolute
// value of the straight line from start to end.
func overLog(from, to, start, end float64) float64 {
	slope := (end - start) / (to - from)
	signed := func(x0, x1 float64) float64 {
		return (start-slope*from)*math.Log(x1/x0) + slope*(x1-x0)
	}
	if start*end >= 0 {
		return math.Abs(signed(from, to))
	}
	zero := from - start/slope
	return math.Abs(signed(from, zero)) + math.Abs(signed(zero, to))
}
