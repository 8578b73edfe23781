package analyze

import (
	"sort"

	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/stats"
)

// Prefix is how prompts share their beginnings, as their block ids tell it. It
// covers the rows that have ids. A row without any, whether hash_ids is absent or
// an empty list, is not known to miss: it counts in no number here.
type Prefix struct {
	BlockSize trace.BlockSize
	// Requests is the number of rows with ids.
	Requests int
	// TotalBlocks counts every use of a block, UniqueBlocks every id once.
	TotalBlocks, UniqueBlocks int
	// HitBlocks and HitTokens are what an infinite cache would have served: the
	// numerators of Infinite.Block and Infinite.Token. Only the prompt's own
	// tokens count, so a hit on a partial last block is not a whole block.
	HitBlocks, HitTokens int
	// Infinite are the hit rates of a cache that never evicts.
	Infinite HitRates
	// NoHit is the number of requests that hit nothing, and AllHit that of
	// requests whose every block was a hit.
	NoHit, AllHit int
	// Context is the observed context of each request in tokens: the values
	// that [Analysis].Observed averages.
	Context stats.Sample

	Popularity Popularity
	Roots      Roots
	Reuse      Reuse
	Tree       Tree
}

// HitRates are the three ratios that are called "hit rate" in the field, each
// 0..1. All count a request's prefix hit m: the number of its leading blocks
// that were cached before it arrived, up to the first miss.
type HitRates struct {
	// Block is the sum of m over the sum of blocks.
	Block float64
	// Token is the sum of min(m * block size, ISL) over the sum of ISL; absent
	// where every prompt is empty.
	Token trace.Opt[float64]
	// MeanRequest is the mean of m / blocks over requests (the "theoretical hit
	// rate" of Dynamo and AIPerf): short prompts weigh as much as long ones.
	MeanRequest float64
}

// prefixCounter follows the blocks of requests in order of arrival. Tokens have
// to wait for the block size, and a shared context for later requests, so it
// keeps for each request what both need.
type prefixCounter struct {
	blocks   blockUses
	requests int // with ids
	total    int
	runs     []run // of all rows, in their order
	latest   int   // the run in which a block was fresh that was found last
	roots    rootCounter
	reuse    reuseCounter
}

// run is a stretch of a prompt's blocks: first some that had been seen before,
// then fresh ones. Fresh blocks are numbered as they come, so a run's are
// consecutive from first. A prefix-chained prompt is one run: its hits and the
// rest. Only ids that are not chained have a seen block after a fresh one,
// which starts another run.
type run struct {
	row         uint32
	seen, fresh int32
	// above is the last of the seen blocks, under which the fresh ones are said to
	// hang, and means something only where there are some. first is the first of
	// these, or of the next run's where it has none.
	above, first uint32
}

// add follows the blocks of the last of rows, the id of the first of which is
// root.
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

// nextRun uses the blocks of a run, the beginning of numbers. That of a prompt's
// first run, which leads, are its prefix hits.
func (c *prefixCounter) nextRun(rows []row, numbers []uint32, leads bool) run {
	me := uint32(len(rows) - 1)
	now := run{row: me, first: uint32(c.blocks.unique)}
	for _, number := range numbers {
		if number >= now.first {
			break
		}
		last := c.use(number, me)
		if leads {
			c.reuse.hit(rows, last)
		}
		now.above = number
		now.seen++
	}
	now.fresh = fresh(numbers[now.seen:], now.first)
	c.blocks.unique += int(now.fresh)
	if now.seen > 0 && now.fresh > 0 {
		c.blocks.repeated(now.above).runs++
	}
	return now
}

// fresh is how many of the first numbers are fresh, in a row that makes them
// from first on.
func fresh(numbers []uint32, first uint32) (n int32) {
	// Fresh blocks are numbered as they come: if the last is the len-th, so many
	// came, and all between are.
	if last := len(numbers) - 1; last >= 0 && numbers[0] == first && numbers[last] == first+uint32(last) {
		return int32(len(numbers))
	}
	for int(n) < len(numbers) && numbers[n] == first+uint32(n) {
		n++
	}
	return n
}

// use notes that a row has a block that was there before, if only in the same
// prompt, which is one use. It returns the last row to have it.
func (c *prefixCounter) use(number, row uint32) (last uint32) {
	if s := c.blocks.repeated(number); s != nil {
		if last = s.last; last != row {
			s.uses++
		}
		s.last = row
		return last
	}
	if latest := c.runs[c.latest]; !latest.has(number) {
		c.latest = c.find(number)
	}
	first := c.runs[c.latest].row
	uses := 2
	if first == row {
		uses = 1
	}
	c.blocks.share(number, uint32(c.latest), row, uses)
	return first
}

// runsOf returns the runs of a row.
func (c *prefixCounter) runsOf(rows []row, i int) []run {
	if i+1 == len(rows) {
		return c.runs[rows[i].runs:]
	}
	return c.runs[rows[i].runs:rows[i+1].runs]
}

// end is the number after the run's last block.
func (r run) end() uint32 { return r.first + uint32(r.fresh) }

// has reports whether a block is one of the run's fresh ones.
func (r run) has(number uint32) bool { return number-r.first < uint32(r.fresh) }

// runWith returns the run in which a block was fresh.
func (c *prefixCounter) runWith(number uint32) run {
	if s := c.blocks.repeated(number); s != nil {
		return c.runs[s.run]
	}
	return c.runs[c.find(number)]
}

// find searches for the run in which a block was fresh: the last that begins
// with it or before it.
func (c *prefixCounter) find(number uint32) int {
	return sort.Search(len(c.runs), func(i int) bool { return c.runs[i].first > number }) - 1
}

// result is nil where there are no blocks at all.
func (c *prefixCounter) result(rows []row, table *block.Table, size trace.BlockSize, top int) (*Prefix, Context) {
	if c.total == 0 {
		return nil, Context{}
	}
	p := &Prefix{
		BlockSize:    size,
		Requests:     c.requests,
		TotalBlocks:  c.total,
		UniqueBlocks: c.blocks.unique,
		Popularity:   c.popularity(rows, table, top),
		Roots:        c.sharedRoots(rows, size, top),
		Reuse:        c.reuse.result(),
		Tree:         c.tree(rows),
	}
	var isl, shared int
	var requestRates float64
	contexts := make([]float64, 0, c.requests)
	for i, r := range rows {
		if !r.hasIDs {
			continue
		}
		runs, length := c.runsOf(rows, i), int(r.isl)
		hit, blocks := leadingHits(runs), countBlocks(runs)
		switch {
		case hit == 0:
			p.NoHit++
		case hit == blocks:
			p.AllHit++
		}
		requestRates += float64(hit) / float64(blocks)
		p.HitBlocks += hit
		p.HitTokens += min(hit*size.Tokens, length)
		context := min(c.leadingRepeats(runs)*size.Tokens, length)
		contexts = append(contexts, float64(context))
		shared += context
		isl += length
	}
	p.Context = stats.Of(contexts)
	p.Infinite = HitRates{
		Block:       float64(p.HitBlocks) / float64(p.TotalBlocks),
		Token:       ratio(p.HitTokens, isl),
		MeanRequest: requestRates / float64(p.Requests),
	}
	return p, Context{
		Mean:        ratio(shared, p.Requests),
		UniqueMean:  ratio(isl-shared, p.Requests),
		SharedRatio: ratio(shared, isl),
	}
}

// leadingHits is the prefix hit of a prompt in blocks.
func leadingHits(runs []run) int {
	if len(runs) == 0 {
		return 0
	}
	return int(runs[0].seen)
}

func countBlocks(runs []run) int {
	n := 0
	for _, r := range runs {
		n += int(r.seen) + int(r.fresh)
	}
	return n
}

// leadingRepeats is the number of leading blocks of a prompt that other prompts
// have, too. A seen block is one of them, or the prompt has it above.
func (c *prefixCounter) leadingRepeats(runs []run) int {
	n := 0
	for _, r := range runs {
		n += int(r.seen)
		for i := range uint32(r.fresh) {
			if s := c.blocks.repeated(r.first + i); s == nil || s.uses < 2 {
				return n
			}
			n++
		}
	}
	return n
}
