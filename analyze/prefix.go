package analyze

import (
	"sort"

	"moontide/analyze/cache"
	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/stats"
)

// Prefix describes how prompts share prefixes according to their block ids. It
// covers the rows with ids: rows without (hash_ids absent or empty) are not treated
// as misses but ignored.
type Prefix struct {
	BlockSize trace.BlockSize
	// Requests is the number of rows with ids.
	Requests int
	// TotalBlocks is the number of block uses, UniqueBlocks the number of distinct
	// ids.
	TotalBlocks, UniqueBlocks int
	// HitBlocks and HitTokens are the hits of an infinite cache. A hit never has
	// more tokens than the prompt.
	HitBlocks, HitTokens int
	// Infinite is the hit rate of a cache that never evicts.
	Infinite cache.Rates
	// NoHit and AllHit are the numbers of requests with no block hit and with
	// every block hit.
	NoHit, AllHit int
	// Context is the observed context of each request in tokens; its mean is in
	// [Analysis].Observed.
	Context stats.Sample

	Popularity Popularity
	Roots      Roots
	Reuse      Reuse
	Tree       Tree
}

// prefixCounter tracks the blocks of requests, numbered by first use, in row order.
// Tokens depend on the block size and contexts on later requests, so it keeps the
// runs of each request. Only blocks that are used again have a record.
type prefixCounter struct {
	requests int // with ids
	total    int // uses of blocks
	unique   int // different blocks
	runs     []run
	latest   int // last result of find
	repeated pages[repeatedBlock]
	index    block.Sparse // from a block to its index in repeated plus 1
	roots    rootCounter
	reuse    reuseCounter
}

// run is a part of a prompt: seen blocks followed by new ones, which have
// consecutive numbers. A prefix-chained prompt is one run. Only with unchained ids
// can a seen block follow a new one, which starts another run.
type run struct {
	row         uint32
	seen, fresh int32
	// above is the last of the seen blocks and the parent of the new ones;
	// undefined if there are no seen blocks. first is the first new block, or that
	// of the next run.
	above, first uint32
}

// repeatedBlock is a block that occurred more than once. Several occurrences in one
// prompt are one use.
type repeatedBlock struct {
	number uint32
	run    uint32 // index of the run in which it was new
	last   uint32 // last row that used it
	uses   uint32
	runs   uint32 // runs of new blocks that follow it
}

// add processes the blocks of the last of rows; root is the id of the first block.
func (c *prefixCounter) add(rows []row, numbers []uint32, root uint64) {
	me := uint32(len(rows) - 1)
	if rows[me].hasIDs {
		c.requests++
	}
	if len(numbers) == 0 {
		return
	}
	c.total += len(numbers)
	c.roots.add(root, numbers[0], rows[me].isl)
	leading := true
	for len(numbers) > 0 {
		now := c.nextRun(rows, numbers, leading)
		c.runs = append(c.runs, now)
		numbers = numbers[now.seen+now.fresh:]
		leading = false
	}
	c.reuse.flush(rows)
}

// nextRun returns the run at the start of numbers: seen blocks, then new ones. The
// seen blocks of a prompt's leading run are prefix hits.
func (c *prefixCounter) nextRun(rows []row, numbers []uint32, leading bool) run {
	me := uint32(len(rows) - 1)
	now := run{row: me, first: uint32(c.unique)}
	for _, number := range numbers {
		if number >= now.first {
			break
		}
		last := c.use(number, me)
		if leading {
			c.reuse.hit(rows, last)
		}
		now.above = number
		now.seen++
	}
	now.fresh = consecutive(numbers[now.seen:], now.first)
	c.unique += int(now.fresh)
	if now.seen > 0 && now.fresh > 0 {
		c.repeatedBlock(now.above).runs++
	}
	return now
}

// consecutive returns how many of the leading numbers are first, first+1, ...
func consecutive(numbers []uint32, first uint32) (n int32) {
	// New blocks are numbered in order: if the last number is right, all are.
	if last := len(numbers) - 1; last >= 0 && numbers[0] == first && numbers[last] == first+uint32(last) {
		return int32(len(numbers))
	}
	for int(n) < len(numbers) && numbers[n] == first+uint32(n) {
		n++
	}
	return n
}

// use counts the use of a known block by a row and returns the previous row that
// used it, which may be the same row.
func (c *prefixCounter) use(number, row uint32) (last uint32) {
	if s := c.repeatedBlock(number); s != nil {
		if last = s.last; last != row {
			s.uses++
		}
		s.last = row
		return last
	}
	if !c.runs[c.latest].has(number) {
		c.latest = c.find(number)
	}
	first := c.runs[c.latest].row
	uses := uint32(2)
	if first == row {
		uses = 1
	}
	c.repeated.add(repeatedBlock{number: number, run: uint32(c.latest), last: row, uses: uses})
	c.index.Set(number, uint32(c.repeated.len))
	return first
}

// repeatedBlock returns nil for a block that occurred once.
func (c *prefixCounter) repeatedBlock(number uint32) *repeatedBlock {
	if i := c.index.At(number); i > 0 {
		return c.repeated.at(i - 1)
	}
	return nil
}

// runsOf returns the runs of a row.
func (c *prefixCounter) runsOf(rows []row, i int) []run {
	if i+1 == len(rows) {
		return c.runs[rows[i].runs:]
	}
	return c.runs[rows[i].runs:rows[i+1].runs]
}

// end returns the number after the run's last block.
func (r run) end() uint32 { return r.first + uint32(r.fresh) }

// has reports whether a block was new in the run.
func (r run) has(number uint32) bool { return number-r.first < uint32(r.fresh) }

// runWith returns the run in which a block was new.
func (c *prefixCounter) runWith(number uint32) run {
	if s := c.repeatedBlock(number); s != nil {
		return c.runs[s.run]
	}
	return c.runs[c.find(number)]
}

// find searches for the run in which a block was new.
func (c *prefixCounter) find(number uint32) int {
	return sort.Search(len(c.runs), func(i int) bool { return c.runs[i].first > number }) - 1
}

// result returns nil if there are no blocks.
func (c *prefixCounter) result(rows []row, table *block.Table, size trace.BlockSize, top int) (*Prefix, Context) {
	if c.total == 0 {
		return nil, Context{}
	}
	p := &Prefix{
		BlockSize:    size,
		Requests:     c.requests,
		TotalBlocks:  c.total,
		UniqueBlocks: c.unique,
		Popularity:   c.popularity(rows, table, top),
		Roots:        c.sharedRoots(size, top),
		Reuse:        c.reuse.result(),
		Tree:         c.tree(rows),
	}
	infinite := cache.Hits{Requests: c.requests, Blocks: c.total}
	shared := 0
	contexts := make([]float64, 0, c.requests)
	for i, r := range rows {
		if !r.hasIDs {
			continue
		}
		runs, length := c.runsOf(rows, i), int(r.isl)
		hit, blocks := int(runs[0].seen), countBlocks(runs)
		switch {
		case hit == 0:
			p.NoHit++
		case hit == blocks:
			p.AllHit++
		}
		infinite.RequestShares += float64(hit) / float64(blocks)
		infinite.HitBlocks += hit
		infinite.HitTokens += min(hit*size.Tokens, length)
		infinite.Tokens += length
		context := min(c.sharedBlocks(runs)*size.Tokens, length)
		contexts = append(contexts, float64(context))
		shared += context
	}
	p.Context = stats.Of(contexts)
	p.HitBlocks, p.HitTokens, p.Infinite = infinite.HitBlocks, infinite.HitTokens, infinite.Rates()
	return p, Context{
		Mean:        ratio(shared, p.Requests),
		UniqueMean:  ratio(infinite.Tokens-shared, p.Requests),
		SharedRatio: ratio(shared, infinite.Tokens),
	}
}

func countBlocks(runs []run) int {
	n := 0
	for _, r := range runs {
		n += int(r.seen) + int(r.fresh)
	}
	return n
}

// sharedBlocks returns the number of leading blocks of a prompt that other prompts
// also have. Every seen block is shared or repeats a shared block of the same
// prompt.
func (c *prefixCounter) sharedBlocks(runs []run) int {
	n := 0
	for _, r := range runs {
		n += int(r.seen)
		for i := range uint32(r.fresh) {
			if s := c.repeatedBlock(r.first + i); s == nil || s.uses < 2 {
				return n
			}
			n++
		}
	}
	return n
}

const (
	pageBits = 12
	pageSize = 1 << pageBits
)

// pages is a list of millions of items that grows without copying.
type pages[T any] struct {
	pages []*[pageSize]T
	len   int
}

func (p *pages[T]) at(i uint32) *T { return &p.pages[i>>pageBits][i%pageSize] }

func (p *pages[T]) add(v T) {
	if p.len%pageSize == 0 {
		p.pages = append(p.pages, new([pageSize]T))
	}
	p.pages[p.len>>pageBits][p.len%pageSize] = v
	p.len++
}

func (p *pages[T]) all(yield func(*T) bool) {
	for i := range p.len {
		if !yield(p.at(uint32(i))) {
			return
		}
	}
}
