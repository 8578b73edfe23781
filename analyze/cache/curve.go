package cache

import (
	"iter"
	"math"
	"math/bits"
	"sort"
)

// Curve holds the hits of LRU caches of all capacities. It does not change and may
// be used concurrently.
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

// bend is a change of slope at a capacity: from there on, each further block of
// capacity hits that many more blocks and tokens of a request of some blocks.
type bend struct {
	at           uint32
	hits, tokens int32
	blocks       int32
}

// newCurve adds up bends, which it reorders.
func newCurve(total Hits, bends []bend) *Curve {
	bends = sortBends(bends)
	capacities := 1
	for i := range bends {
		if i == 0 || bends[i].at != bends[i-1].at {
			capacities++
		}
	}
	points := append(make([]point, 0, capacities), point{})
	var hits, tokens int
	var shares exactSum
	for i := 0; i < len(bends); {
		now := points[len(points)-1]
		if at := bends[i].at; at != now.capacity {
			width := int(at - now.capacity)
			now.blocks += hits * width
			now.tokens += tokens * width
			now.shares += shares.value() * float64(width)
			now.capacity = at
			points = append(points, now)
		}
		for ; i < len(bends) && bends[i].at == now.capacity; i++ {
			hits += int(bends[i].hits)
			tokens += int(bends[i].tokens)
			shares.add(float64(bends[i].hits) / float64(bends[i].blocks))
		}
	}
	return &Curve{total, points}
}

// sortBends sorts hundreds of thousands of bends by capacity, with a radix sort of
// 11 bits per pass: a comparison sort would dominate the run time.
func sortBends(bends []bend) []bend {
	const digit = 11
	highest := uint32(0)
	for _, b := range bends {
		highest = max(highest, b.at)
	}
	from, to := bends, make([]bend, len(bends))
	for shift := 0; shift < bits.Len32(highest); shift += digit {
		var starts [1 << digit]int
		for _, b := range from {
			starts[b.at>>shift%(1<<digit)]++
		}
		start := 0
		for i, n := range starts {
			starts[i] = start
			start += n
		}
		for _, b := range from {
			place := &starts[b.at>>shift%(1<<digit)]
			to[*place] = b
			*place++
		}
		from, to = to, from
	}
	return from
}

// exactSum is a float sum that returns to its value when the same numbers are added
// and later subtracted (Neumaier's compensated summation, 1974).
type exactSum struct{ sum, lost float64 }

func (s *exactSum) add(x float64) {
	sum := s.sum + x
	if math.Abs(s.sum) >= math.Abs(x) {
		s.lost += s.sum - sum + x
	} else {
		s.lost += x - sum + s.sum
	}
	s.sum = sum
}

func (s *exactSum) value() float64 { return s.sum + s.lost }

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
		h.HitBlocks += (q.blocks - p.blocks) / width * past
		h.HitTokens += (q.tokens - p.tokens) / width * past
		h.RequestShares += (q.shares - p.shares) / float64(width) * float64(past)
	}
	return h
}

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

// Bends returns the capacities at which the curve bends, from 0 to [Curve.Largest],
// with the exact hits there. Between two of them all three counts are straight lines.
func (c *Curve) Bends() iter.Seq2[int, Hits] {
	return func(yield func(int, Hits) bool) {
		for _, p := range c.points {
			h := c.total
			h.HitBlocks, h.HitTokens, h.RequestShares = p.blocks, p.tokens, p.shares
			if !yield(int(p.capacity), h) {
				return
			}
		}
	}
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
