package analyze

import (
	"moontide/analyze/cache"
	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/stats"
)

// Prefix describes how prompts share prefixes according to their block ids. It
// covers the rows with ids: rows without (hash_ids absent or empty) are not treated
// as misses but ignored.
type Prefix struct {
	BlockSize block.Size
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
	// Unchained is the number of requests with a known block after a new one: its id
	// does not stand for the whole prefix. Blocks then hit after other blocks than those
	// that they were computed with.
	Unchained int
	// Context is the observed context of each request in tokens; its mean is in
	// [Analysis].Observed.
	Context stats.Sample

	Roots Roots
	Reuse Reuse
}

// prefixCounter tracks the blocks of requests, numbered by first use, in row order.
// Tokens depend on the block size and contexts on later requests, so it keeps the
// runs of each request. Only blocks that are used again have a record.
type prefixCounter struct {
	requests  int // with ids
	total     int // uses of blocks
	unique    int // different blocks
	runs      runs
	latest    uint32 // last result of runs.with
	latestRun run
	repeated  block.List[repeatedBlock]
	index     block.Sparse // from a block to its index in repeated plus 1
	roots     rootCounter
	reuse     reuseCounter
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
func (c *prefixCounter) add(rows *rows, numbers []uint32, root uint64) {
	me := uint32(rows.len() - 1)
	if rows.at(int(me)).hasIDs {
		c.requests++
	}
	if len(numbers) == 0 {
		return
	}
	c.total += len(numbers)
	c.roots.add(root, numbers[0], rows.at(int(me)).isl)
	leading := true
	for len(numbers) > 0 {
		now := c.nextRun(rows, numbers, leading)
		c.runs.list.Add(now)
		numbers = numbers[now.seen+now.fresh:]
		leading = false
	}
	c.reuse.flush(rows)
}

// nextRun returns the run at the start of numbers: seen blocks, then new ones. The
// seen blocks of a prompt's leading run are prefix hits.
func (c *prefixCounter) nextRun(rows *rows, numbers []uint32, leading bool) run {
	me := uint32(rows.len() - 1)
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
	for _, number := range numbers[now.seen:] { // new blocks are numbered in order
		if number != now.end() {
			break
		}
		now.fresh++
	}
	c.unique += int(now.fresh)
	if now.seen > 0 && now.fresh > 0 {
		c.repeatedBlock(now.above).runs++
	}
	return now
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
	if !c.latestRun.has(number) {
		c.latest = c.runs.with(number)
		c.latestRun = *c.runs.list.At(c.latest)
	}
	first := c.latestRun.row
	uses := uint32(2)
	if first == row {
		uses = 1
	}
	c.repeated.Add(repeatedBlock{number: number, run: c.latest, last: row, uses: uses})
	c.index.Set(number, uint32(c.repeated.Len()))
	return first
}

// repeatedBlock returns nil for a block that occurred once.
func (c *prefixCounter) repeatedBlock(number uint32) *repeatedBlock {
	if i := c.index.At(number); i > 0 {
		return c.repeated.At(i - 1)
	}
	return nil
}

// runWith returns the run in which a block was new.
func (c *prefixCounter) runWith(number uint32) run {
	if s := c.repeatedBlock(number); s != nil {
		return *c.runs.list.At(s.run)
	}
	return *c.runs.list.At(c.runs.with(number))
}

// hits fills in the hits, also by window, and returns the shared part of prompts.
func (c *prefixCounter) hits(p *Prefix, rows *rows, over *Time) Context {
	size := p.BlockSize
	infinite := cache.Hits{Requests: c.requests, Blocks: c.total}
	contextTokens := 0
	var contexts stats.Collector
	for i, runs := range c.runs.byRow {
		r := rows.at(i)
		length := int(r.isl)
		hit, blocks := int(runs[0].seen), countBlocks(runs)
		switch {
		case hit == 0:
			p.NoHit++
		case hit == blocks:
			p.AllHit++
		}
		if len(runs) > 1 {
			p.Unchained++
		}
		infinite.RequestShares += float64(hit) / float64(blocks)
		infinite.HitBlocks += hit
		hitTokens := min(hit*size.Tokens, length)
		infinite.HitTokens += hitTokens
		infinite.Tokens += length
		context := min(c.sharedBlocks(runs)*size.Tokens, length)
		contexts.Add(float64(context))
		contextTokens += context
		if w := over.of(r); w != nil {
			w.Prompt, w.Hit, w.Context = w.Prompt+length, w.Hit+hitTokens, w.Context+context
		}
	}
	p.Context = contexts.Sample()
	p.HitBlocks, p.HitTokens, p.Infinite = infinite.HitBlocks, infinite.HitTokens, infinite.Rates()
	return Context{
		Mean:        trace.Ratio(contextTokens, p.Requests),
		UniqueMean:  trace.Ratio(infinite.Tokens-contextTokens, p.Requests),
		SharedRatio: trace.Ratio(contextTokens, infinite.Tokens),
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

// end is the number after the last new block.
func (r run) end() uint32 { return r.first + uint32(r.fresh) }

// has reports whether a block was new in the run.
func (r run) has(number uint32) bool { return number-r.first < uint32(r.fresh) }

// runs are those of all prompts, in row order: 20 bytes each.
type runs struct{ list block.List[run] }

// with returns the index of the run in which a block was new.
func (l *runs) with(number uint32) uint32 {
	return uint32(l.list.Search(func(r *run) bool { return r.first > number }) - 1)
}

// firstOf returns the index of the first run of a row, or of the next that has one.
func (l *runs) firstOf(row uint32) uint32 {
	return uint32(l.list.Search(func(r *run) bool { return r.row >= row }))
}

// byRow yields the rows with block ids and their runs, which are valid until the next.
func (l *runs) byRow(yield func(row int, own []run) bool) {
	var own []run
	for i := range l.list.Len() {
		r := *l.list.At(uint32(i))
		if len(own) > 0 && own[0].row != r.row {
			if !yield(int(own[0].row), own) {
				return
			}
			own = own[:0]
		}
		own = append(own, r)
	}
	if len(own) > 0 {
		yield(int(own[0].row), own)
	}
}
