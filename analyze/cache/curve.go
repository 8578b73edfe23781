package cache

import (
	"math"
	"sort"
)

// Curve holds the hits of LRU caches of all capacities. They are exact at capacities
// below 100,000 blocks and at those of at most five significant digits; between two of
// these, a curve is a straight line. A Curve does not change and may be used concurrently.
type Curve struct {
	total Hits
	// points holds the bends of the curve by capacity, the first at 0. The curve is
	// linear between points and flat after the last.
	points []point
}

// point holds the hits at a capacity.
type point struct {
	capacity       uint32
	blocks, tokens int
	shares         float64
}

// At returns the hits of an LRU cache of a capacity in blocks; below 1 it hits
// nothing.
func (c *Curve) At(capacity int) Hits {
	capacity = min(max(capacity, 0), c.Largest())
	i := sort.Search(len(c.points), func(i int) bool { return int(c.points[i].capacity) > capacity }) - 1
	p, h := c.points[i], c.total
	h.HitBlocks, h.HitTokens, h.RequestShares = p.blocks, p.tokens, p.shares
	if past := capacity - int(p.capacity); past > 0 {
		q := c.points[i+1]
		width := int(q.capacity - p.capacity)
		h.HitBlocks += part(q.blocks-p.blocks, past, width)
		h.HitTokens += part(q.tokens-p.tokens, past, width)
		h.RequestShares += (q.shares - p.shares) / float64(width) * float64(past)
	}
	return h
}

// part returns past/width of n without overflow.
func part(n, past, width int) int { return n/width*past + n%width*past/width }

// Infinite returns the hits of a cache that never evicts.
func (c *Curve) Infinite() Hits { return c.At(math.MaxInt) }

// Largest returns the capacity in blocks from which the curve is flat.
func (c *Curve) Largest() int { return int(c.points[len(c.points)-1].capacity) }

// SmallestByBlock returns the smallest capacity in blocks that reaches a share, 0..1,
// of the infinite cache's block hit rate.
func (c *Curve) SmallestByBlock(share float64) int {
	return c.smallest(share, func(h Hits) int { return h.HitBlocks })
}

// SmallestByToken returns the smallest capacity in blocks that reaches a share, 0..1,
// of the infinite cache's token hit rate.
func (c *Curve) SmallestByToken(share float64) int {
	return c.smallest(share, func(h Hits) int { return h.HitTokens })
}

func (c *Curve) smallest(share float64, hit func(Hits) int) int {
	enough := share * float64(hit(c.Infinite()))
	return sort.Search(c.Largest(), func(capacity int) bool {
		return float64(hit(c.At(capacity))) >= enough
	})
}

// Spaced returns at most n different capacities from 1 to [Curve.Largest], ascending
// and evenly spaced on a logarithmic axis, for plots.
func (c *Curve) Spaced(n int) []int {
	largest := c.Largest()
	if n < 1 || largest < 1 {
		return nil
	}
	if n == 1 {
		return []int{largest}
	}
	capacities := make([]int, 0, n)
	for i := range n {
		capacity := int(math.Round(math.Exp(math.Log(float64(largest)) * float64(i) / float64(n-1))))
		if len(capacities) == 0 || capacity > capacities[len(capacities)-1] {
			capacities = append(capacities, capacity)
		}
	}
	return capacities
}
