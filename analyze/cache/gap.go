package cache

import "math"

// Gap is how far two LRU curves are apart in their block hit rates, 0..1.
type Gap struct {
	Largest float64
	At      int // the smallest capacity in blocks with the largest gap
	// Mean is over capacities that lie evenly on a logarithmic axis, from one
	// block to where both curves are flat: caches are bought in doublings.
	Mean float64
}

// gapPoints is how many capacities the mean is taken over.
const gapPoints = 1000

// GapOf compares two curves at equal capacities in blocks, so they should be
// of traces with one block size. The largest gap is exact: between two bends
// both curves are straight, so it lies at a bend.
func GapOf(a, b *Curve) Gap {
	var g Gap
	apart := func(capacity int) float64 {
		return math.Abs(a.At(capacity).Rates().Block - b.At(capacity).Rates().Block)
	}
	for _, c := range []*Curve{a, b} {
		for capacity := range c.Bends() {
			if d := apart(capacity); d > g.Largest || d == g.Largest && d > 0 && capacity < g.At {
				g.Largest, g.At = d, capacity
			}
		}
	}
	wider := a
	if b.Largest() > a.Largest() {
		wider = b
	}
	points := wider.Spaced(gapPoints)
	for _, capacity := range points {
		g.Mean += apart(capacity) / float64(len(points))
	}
	return g
}
