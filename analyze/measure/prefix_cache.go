package measure

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/block"
)

// promptBlocks holds the blocks of prompts as ranges of numbers.
type promptBlocks struct {
	table   block.Table
	ranges  []blockRange
	numbers []uint32 // of the latest prompt, reused
	ids     []uint64 // reused
}

// blockRange is a range of n consecutive block numbers.
type blockRange struct{ first, n uint32 }

// blockSpan is the index of a prompt's ranges.
type blockSpan struct{ from, to uint32 }

// idsOf returns the block ids of a record. Models share no blocks.
func (b *promptBlocks) idsOf(rec *replay.Record) []uint64 {
	if rec.Model == "" {
		return rec.HashIDs
	}
	mix := xxhash.Sum64String(rec.Model)
	b.ids = b.ids[:0]
	for _, id := range rec.HashIDs {
		b.ids = append(b.ids, id^mix)
	}
	return b.ids
}

func (b *promptBlocks) add(ids []uint64) blockSpan {
	b.numbers = b.table.AppendNumbers(b.numbers[:0], ids)
	return b.addNumbers(b.numbers)
}

func (b *promptBlocks) addNumbers(numbers []uint32) blockSpan {
	from := len(b.ranges)
	for _, n := range numbers {
		if last := len(b.ranges) - 1; last >= from && b.ranges[last].first+b.ranges[last].n == n {
			b.ranges[last].n++
			continue
		}
		b.ranges = append(b.ranges, blockRange{n, 1})
	}
	return blockSpan{uint32(from), uint32(len(b.ranges))}
}

// of yields the numbers of a prompt's blocks.
func (b *promptBlocks) of(s blockSpan) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for _, r := range b.ranges[s.from:s.to] {
			for n := r.first; n < r.first+r.n; n++ {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// prefixCache simulates a prefix cache that all servers share, starts empty and never
// evicts. It takes about 90 bytes per prompt and 12 bytes per distinct block.
type prefixCache struct {
	blockSize int
	blocks    *promptBlocks
	prompts   []cachedPrompt
	rank      []int32            // of the prompts in the order of sends
	holders   []blockHolder      // of full blocks, by number
	tails     map[uint32][]int32 // prompts that end within a block, by its number
}

// blockHolder has the first two prompts sent with a block, -1 if there is none, and the time
// of the first token of one.
type blockHolder struct {
	first, second int32
	computed      time.Duration
}

// cachedPrompt is the prompt of a request or, if isAnswer is set, the prompt with the answer
// to it.
type cachedPrompt struct {
	*Request
	isAnswer    bool
	sent, first time.Duration // first is never if no token arrived
	row         int           // that of an answer sorts before those of prompts
	length      int32         // without the chat template
	blocks      blockSpan
	full        int32 // number of blocks, of which the last one has
	lastLength  int32 // tokens

	// base is the index of the prompt or answer that it continues, or noBase. A cache can have
	// cacheable tokens of it and of the answer to it.
	base, cacheable int32

	// Leading tokens shared with prompts sent before it, with prompts whose first token had
	// arrived by then, and with prompts sent before its own first token.
	shared, computed, concurrent int32
}

const (
	never  = time.Duration(math.MaxInt64)
	noBase = -1
)

// promptOf returns the prompt of a request that was sent.
func (c *collector) promptOf(q *Request) cachedPrompt {
	p := cachedPrompt{Request: q, sent: q.Sent, first: never, row: q.Row, length: int32(c.opts.ownISL(int(q.ISL))), blocks: q.blocks, base: noBase}
	if q.hasFirst {
		p.first = max(q.First, q.Sent)
	}
	return p
}

// counted reports whether the prompt is compared. The others may have filled the cache.
func (p *cachedPrompt) counted() bool { return p.Counted && !p.isAnswer }

// tokens returns the number of tokens by the server's count, if known.
func (p cachedPrompt) tokens() int {
	if p.Input >= 0 {
		return int(p.Input)
	}
	return int(p.length)
}

func sentOrder(a, b *Request) int {
	return cmp.Or(cmp.Compare(a.Sent, b.Sent), cmp.Compare(a.Row, b.Row))
}

// add adds a prompt and returns its index.
func (c *prefixCache) add(p cachedPrompt) int32 {
	if c.blockSize > 0 && p.length > 0 {
		size, blocks := int32(c.blockSize), 0
		for _, r := range c.blocks.ranges[p.blocks.from:p.blocks.to] {
			blocks += int(r.n)
		}
		p.full = int32(min(blocks, int((p.length-1)/size+1)))
		p.lastLength = min(size, p.length-(p.full-1)*size)
	}
	c.prompts = append(c.prompts, p)
	return int32(len(c.prompts) - 1)
}

// maxHits returns an upper bound of the cached tokens: each block is computed at least once,
// at best in the prompt with the fewest of its tokens. Prompts that are not counted have 0.
func (c *prefixCache) maxHits() trace.Opt[int] {
	if c.blockSize == 0 || slices.ContainsFunc(c.prompts, func(p cachedPrompt) bool { return p.blind }) {
		return trace.Opt[int]{}
	}
	hits, fewest := 0, slices.Repeat([]int32{math.MaxInt32}, c.blocks.table.Len()+1)
	for i := range c.prompts {
		p := &c.prompts[i]
		left := 0
		if p.counted() {
			left = int(p.ISL)
		}
		for n := range c.blocks.of(p.blocks) {
			tokens := min(c.blockSize, left)
			left -= tokens
			hits += tokens
			fewest[n] = min(fewest[n], int32(tokens))
		}
	}
	for _, tokens := range fewest {
		if tokens < math.MaxInt32 {
			hits -= int(tokens)
		}
	}
	return trace.Some(hits)
}

// inOrder returns the indexes of n things in the order of compare, equal ones by index.
func inOrder(n int, compare func(a, b int32) int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(compare(a, b), cmp.Compare(a, b)) })
	return order
}

// play finds what each prompt shares. It returns the indexes of the prompts in the order of
// sends.
func (c *prefixCache) play() []int32 {
	sends := inOrder(len(c.prompts), func(a, b int32) int {
		p, q := &c.prompts[a], &c.prompts[b]
		return cmp.Or(cmp.Compare(p.sent, q.sent), cmp.Compare(p.row, q.row))
	})
	c.rank, c.tails = make([]int32, len(sends)), map[uint32][]int32{}
	c.holders = slices.Repeat([]blockHolder{{-1, -1, never}}, c.blocks.table.Len()+1)
	for rank, i := range sends {
		p := &c.prompts[i]
		c.rank[i] = int32(rank)
		for n, length := range c.blocksOf(p) {
			h := &c.holders[n]
			switch {
			case length < c.blockSize:
				c.tails[n] = append(c.tails[n], i)
				continue
			case h.first < 0:
				h.first = i
			case h.second < 0 && h.first != i:
				h.second = i
			}
			h.computed = min(h.computed, p.first)
		}
	}
	for i := range c.prompts {
		p, me := &c.prompts[i], int32(i)
		before := func(r int32) bool { return r >= 0 && c.rank[r] < c.rank[me] }
		p.shared = c.prefix(p, func(h blockHolder) bool { return before(h.first) }, before)
		p.computed = c.prefix(p, func(h blockHolder) bool { return h.computed < p.sent }, func(r int32) bool { return c.prompts[r].first < p.sent })
		if p.counted() && p.Cached > p.shared { // else it does not matter
			others := func(r int32) bool { return r >= 0 && r != me && c.prompts[r].sent <= p.first }
			p.concurrent = c.prefix(p, func(h blockHolder) bool { return others(h.first) || others(h.second) }, others)
		}
	}
	return sends
}

// blocksOf yields the blocks of a prompt with their lengths.
func (c *prefixCache) blocksOf(p *cachedPrompt) iter.Seq2[uint32, int] {
	return func(yield func(number uint32, length int) bool) {
		left := p.full
		for n := range c.blocks.of(p.blocks) {
			if left--; left < 0 {
				return
			}
			length := c.blockSize
			if left == 0 {
				length = int(p.lastLength)
			}
			if !yield(n, length) {
				return
			}
		}
	}
}

// prefix returns how many leading tokens of a prompt are in full blocks with a holder that
// counts, or in the ends of prompts that count.
func (c *prefixCache) prefix(p *cachedPrompt, full func(blockHolder) bool, ends func(prompt int32) bool) (tokens int32) {
	least := int32(0)
	if p.base != noBase && ends(p.base) {
		least = p.cacheable
	}
	for n, length := range c.blocksOf(p) {
		if full(c.holders[n]) {
			tokens += int32(length)
			continue
		}
		part := 0
		for _, i := range c.tails[n] {
			r := &c.prompts[i]
			if r != p && ends(i) {
				part = max(part, min(int(r.lastLength), length))
			}
			if part == length || r.sent > p.first { // stop early: many equal prompts have the same part
				break
			}
		}
		if tokens += int32(part); part < length {
			break
		}
	}
	return max(tokens, least)
}
