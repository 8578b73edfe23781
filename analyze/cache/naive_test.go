package cache_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/analyze/cache"
)

// request is a row of a small trace.
type request struct {
	blocks  []uint32
	isl     int
	session string
}

func sequenceOf(rows []request) *cache.Sequence {
	var s cache.Sequence
	for _, r := range rows {
		s.Add(r.blocks, r.isl, r.session)
	}
	return &s
}

// drawRequests draws prompts that extend earlier ones, and prompts of arbitrary blocks,
// which repeat blocks and hit again after a miss. The number of blocks mostly fits the
// ISL, with a partial last one.
func drawRequests(t *rapid.T, blockSize int) []request {
	var rows []request
	next := uint32(0)
	for range rapid.IntRange(0, 25).Draw(t, "requests") {
		blocks := []uint32{}
		if rapid.Bool().Draw(t, "chained") {
			if len(rows) > 0 {
				earlier := rows[rapid.IntRange(0, len(rows)-1).Draw(t, "earlier")].blocks
				blocks = append(blocks, earlier[:rapid.IntRange(0, len(earlier)).Draw(t, "kept")]...)
			}
			for range rapid.IntRange(0, 5).Draw(t, "more") {
				blocks = append(blocks, next)
				next++
			}
		} else {
			blocks = rapid.SliceOfN(rapid.Uint32Range(0, next+2), 0, 8).Draw(t, "any")
			for _, b := range blocks {
				next = max(next, b+1)
			}
		}
		isl := len(blocks)*blockSize - rapid.IntRange(0, blockSize-1).Draw(t, "short")
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			isl = rapid.IntRange(0, 10*blockSize).Draw(t, "isl")
		}
		session := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "session")
		rows = append(rows, request{blocks, max(isl, 0), session})
	}
	return rows
}

// naiveCache is the simplest cache: its blocks, with what the policies need of each.
type naiveCache struct {
	capacity int
	victim   func(c *naiveCache) uint32
	uses     map[uint32]int // of the blocks held
	lastUse  map[uint32]int
	entered  map[uint32]int
	now      int
}

func newNaive(capacity int, victim func(*naiveCache) uint32) *naiveCache {
	return &naiveCache{capacity, victim, map[uint32]int{}, map[uint32]int{}, map[uint32]int{}, 0}
}

// least returns the cached block with the smallest key.
func (c *naiveCache) least(key func(uint32) [2]int) uint32 {
	var held []uint32
	for b := range c.uses {
		held = append(held, b)
	}
	return slices.MinFunc(held, func(a, b uint32) int {
		x, y := key(a), key(b)
		return slices.Compare(x[:], y[:])
	})
}

var victims = map[cache.Policy]func(*naiveCache) uint32{
	cache.LRU: func(c *naiveCache) uint32 {
		return c.least(func(b uint32) [2]int { return [2]int{c.lastUse[b]} })
	},
	cache.FIFO: func(c *naiveCache) uint32 {
		return c.least(func(b uint32) [2]int { return [2]int{c.entered[b]} })
	},
	cache.LFU: func(c *naiveCache) uint32 {
		return c.least(func(b uint32) [2]int { return [2]int{c.uses[b], c.lastUse[b]} })
	},
}

// serve returns the prefix hit of a request and then uses its blocks.
func (c *naiveCache) serve(blocks []uint32) int {
	hit := 0
	for hit < len(blocks) && c.uses[blocks[hit]] > 0 {
		hit++
	}
	for i := len(blocks) - 1; i >= 0 && c.capacity > 0; i-- {
		b := blocks[i]
		c.now++
		if c.uses[b] == 0 {
			if len(c.uses) == c.capacity {
				delete(c.uses, c.victim(c))
			}
			c.entered[b] = c.now
		}
		c.uses[b]++
		c.lastUse[b] = c.now
	}
	return hit
}

func naiveHits(rows []request, c *naiveCache, blockSize int) cache.Hits {
	var h cache.Hits
	for _, r := range rows {
		h = plus(h, r, c.serve(r.blocks), blockSize)
	}
	return h
}

func plus(h cache.Hits, r request, hit, blockSize int) cache.Hits {
	h.Requests++
	h.Blocks += len(r.blocks)
	h.Tokens += r.isl
	h.HitBlocks += hit
	h.HitTokens += min(hit*blockSize, r.isl)
	if hit > 0 {
		h.RequestShares += float64(hit) / float64(len(r.blocks))
	}
	return h
}

// same compares hits, with a tolerance for sums of floats.
func same(a, b cache.Hits) bool {
	close := math.Abs(a.RequestShares-b.RequestShares) <= 1e-9*(1+math.Abs(b.RequestShares))
	a.RequestShares, b.RequestShares = 0, 0
	return close && a == b
}

func distinct(rows []request) int {
	seen := map[uint32]bool{}
	for _, r := range rows {
		for _, b := range r.blocks {
			seen[b] = true
		}
	}
	return len(seen)
}

func simulate(t testing.TB, rows []request, p cache.Policy, blockSize int, capacities ...int) []cache.Hits {
	hits, err := cache.Simulate(sequenceOf(rows), p, blockSize, capacities...)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}
