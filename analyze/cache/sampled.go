package cache

import (
	"fmt"
	"math"

	"moontide/trace/block"
)

// SampledBuilder estimates the LRU [Curve] of the requests added to it from a share of
// the distinct blocks (SHARDS: Waldspurger et al., Efficient MRC Construction with SHARDS,
// FAST 2015). A block is in the sample by a hash of its id, so all of its uses are or none.
// The stack distances among the sampled blocks, divided by the share, are those among
// all. Uses that the sample has too many of or too few count as hits of the smallest cache
// (SHARDS-adj): they are those of the few blocks that are used all the time. The sample says
// little about small caches, so those of up to 65,536 blocks are found exactly, from all
// blocks.
//
// Ids have to be chained to their prefixes, so that a block is last used no later than
// the one before it. It holds about 50 bytes for each sampled block and 6 for each use, and
// 13 MiB.
type SampledBuilder struct {
	share    float64
	table    block.Table // of sampled blocks
	timeline timeline
	total    Hits
	nonEmpty int // requests
	largest  int // distance
	uses     [groups]int
	log      requestLog[use]
	head     *head // nil if the sample has all blocks
	request  []use
	numbers  []uint32
}

// groups divide the sampled blocks by their hashes: how far apart their hit rates are
// tells how far the estimate may be from the truth.
const groups = 16

// use is the use of a sampled block.
type use struct {
	place    int // in the prompt, from 0
	group    int
	distance int // in sampled blocks; -1 for no prefix hit
}

func (u use) pair() (a, b uint64) { return uint64(u.place*groups + u.group), uint64(u.distance + 1) }

func (use) ofPair(a, b uint64) use { return use{int(a) / groups, int(a) % groups, int(b) - 1} }

// NewSampledBuilder returns a builder for a share of the blocks, above 0 and at most 1.
func NewSampledBuilder(share float64) (*SampledBuilder, error) {
	if !(share > 0 && share <= 1) {
		return nil, fmt.Errorf("the share of the blocks to sample is not above 0 and at most 1: %v", share)
	}
	b := &SampledBuilder{share: share}
	if share < 1 {
		b.head = newHead(headBlocks)
	}
	return b, nil
}

// Add looks up and then uses the blocks of the next request, whose prompt has isl tokens.
func (b *SampledBuilder) Add(ids []uint64, isl int) {
	b.total.Requests++
	b.total.Tokens += isl
	if len(ids) == 0 {
		return
	}
	b.nonEmpty++
	b.total.Blocks += len(ids)
	if b.head != nil {
		b.head.add(ids, isl)
	}
	b.request, b.numbers = b.request[:0], b.numbers[:0]
	below := uint64(b.share * (1 << 53))
	highest, missed := 0, false
	for i, id := range ids {
		hash := mixed(id)
		if hash>>11 >= below {
			continue
		}
		number, _ := b.table.Number(id)
		u := use{place: i, group: int(mixed(hash) % groups), distance: -1}
		place, used := b.timeline.lastUse(number)
		if missed = missed || !used; !missed {
			highest = max(highest, b.timeline.after(place))
			u.distance = highest
		}
		b.uses[u.group]++
		b.request, b.numbers = append(b.request, u), append(b.numbers, number)
	}
	if len(b.request) > 0 {
		b.timeline.use(b.numbers)
		b.log.add(isl, len(ids), b.request)
		b.largest = max(b.largest, highest)
	}
}

// mixed is SplitMix64, with its increment, unlike the hash of moontide/trace/block.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Err returns an error if the sample has too many blocks, see [block.Table.Err].
func (b *SampledBuilder) Err() error { return b.table.Err() }

// SampledCurve is an estimated curve.
type SampledCurve struct {
	*Curve
	Share  float64 // of the distinct blocks in the sample
	Blocks int     // in the sample
	Unique int     // estimated number of distinct blocks of the trace
	// Exact is the capacity in blocks up to which the curve is exact.
	Exact int

	hits     [groups][]int // of each group, by coarse capacity
	expected float64       // uses of a group
}

// Curve returns the estimate for the requests so far and blocks of blockSize tokens; it
// panics below 1. With a share of 1 it is exact.
func (b *SampledBuilder) Curve(blockSize int) *SampledCurve {
	if blockSize < 1 {
		panic("cache: a block has at least 1 token")
	}
	c := &SampledCurve{Share: b.share, Blocks: b.table.Len(), expected: b.share * float64(b.total.Blocks) / groups}
	c.Unique = int(math.Round(float64(c.Blocks) / b.share))
	largest := max(b.scaled(b.largest)+1, 1)
	for i := range c.hits {
		c.hits[i] = make([]int, coarse(largest)+1)
	}
	lines := newSlopes(largest)
	var sampled Hits
	for r := range b.log.all {
		for _, u := range r.items {
			tokens := min((u.place+1)*blockSize, r.isl) - min(u.place*blockSize, r.isl)
			sampled.add(Hits{Blocks: 1, Tokens: tokens, RequestShares: 1 / float64(r.blocks)})
			if u.distance >= 0 {
				at := b.scaled(u.distance)
				lines.add(at, 1, slope{hits: 1, tokens: tokens, blocks: r.blocks})
				c.hits[u.group][coarse(at+1)]++
			}
		}
	}
	if b.share == 1 {
		c.Curve, c.Exact = lines.curve(b.total), math.MaxInt
		return c
	}
	lines.adjust(Hits{
		HitBlocks:     int(b.share*float64(b.total.Blocks)) - sampled.Blocks,
		HitTokens:     int(b.share*float64(min(b.total.Tokens, b.total.Blocks*blockSize))) - sampled.Tokens,
		RequestShares: b.share*float64(b.nonEmpty) - sampled.RequestShares,
	})
	c.Curve = lines.curve(b.total)
	c.scale(1 / b.share)
	c.begin(b.head, blockSize)
	for i := range c.hits {
		c.hits[i][0] += int(c.expected) - b.uses[i]
		for k := 1; k < len(c.hits[i]); k++ {
			c.hits[i][k] += c.hits[i][k-1]
		}
	}
	return c
}

// scaled returns the distance among all blocks that one among the sampled blocks stands for.
func (b *SampledBuilder) scaled(distance int) int { return int(float64(distance) / b.share) }

// adjust adds hits to a cache of one block and any larger one.
func (s *slopes) adjust(h Hits) {
	for i, sign := range []int{1, -1} {
		change := &s.changes[i]
		change.hits += sign * h.HitBlocks
		change.tokens += sign * h.HitTokens
		change.shares.Add(float64(sign) * h.RequestShares)
	}
}

// scale multiplies the hits and keeps them within what is possible: the adjustment may
// have been too large for the smallest caches.
func (c *SampledCurve) scale(by float64) {
	before := point{}
	for i := range c.points {
		p := &c.points[i]
		p.blocks = min(max(int(math.Round(by*float64(p.blocks))), before.blocks), c.total.Blocks)
		p.tokens = min(max(int(math.Round(by*float64(p.tokens))), before.tokens), c.total.Tokens)
		p.shares = min(max(by*p.shares, before.shares), float64(c.total.Requests))
		before = *p
	}
}

// begin replaces the beginning of the curve by the exact one. By how much the estimate is
// off where it ends is known: it is corrected by that, less and less for larger caches.
func (c *SampledCurve) begin(h *head, blockSize int) {
	exact := h.points(blockSize)
	if h.whole() {
		c.points, c.Unique, c.Exact = exact, len(h.ids), math.MaxInt
		return
	}
	c.Exact = h.most
	if last := exact[len(exact)-1]; int(last.capacity) < h.most {
		last.capacity = uint32(h.most)
		exact = append(exact, last)
	}
	last, off := exact[len(exact)-1], c.At(h.most)
	before := last
	for _, p := range c.points {
		if int(p.capacity) <= h.most {
			continue
		}
		part := float64(h.most) / float64(p.capacity)
		p.blocks = min(max(p.blocks+int(part*float64(last.blocks-off.HitBlocks)), before.blocks), c.total.Blocks)
		p.tokens = min(max(p.tokens+int(part*float64(last.tokens-off.HitTokens)), before.tokens), c.total.Tokens)
		p.shares = min(max(p.shares+part*(last.shares-off.RequestShares), before.shares), float64(c.total.Requests))
		exact = append(exact, p)
		before = p
	}
	c.points = exact
}

// coarse returns a bucket of capacities, fifty for each tenfold one.
func coarse(capacity int) int { return int(50 * math.Log10(float64(max(capacity, 1)))) }

// Error returns the estimated standard error of the block hit rate at a capacity, 0..1.
// One part is that of the choice of blocks, by the standard deviation between groups of
// them; the other that of the distances, which are as uncertain as a count of as many
// sampled blocks. It is 0 where the curve is exact.
func (c *SampledCurve) Error(capacity int) float64 {
	if capacity <= c.Exact || c.expected == 0 {
		return 0
	}
	k := min(coarse(capacity), len(c.hits[0])-1)
	mean, squares := 0.0, 0.0
	for i := range c.hits {
		rate := float64(c.hits[i][k]) / c.expected
		mean += rate / groups
		squares += rate * rate / groups
	}
	choice := max(squares-mean*mean, 0) / (groups - 1)
	apart := float64(capacity) * min(1/math.Sqrt(float64(capacity)*c.Share), 1)
	rate := func(capacity float64) float64 { return c.At(int(capacity)).Rates().Block }
	distance := (rate(float64(capacity)+apart) - rate(float64(capacity)-apart)) / 2
	return math.Sqrt(choice + distance*distance)
}
