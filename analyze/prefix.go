package analyze

import (
	"moontide/analyze/dist"
	"moontide/trace"
)

// Prefix is how prompts share their beginnings, as their block ids tell it. It
// covers the rows that have ids. A row without them (hash_ids absent) is not
// known to miss; it counts in no number here. A row with an empty list of ids
// is a prompt shorter than a block: it hits nothing.
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
	Context dist.Distribution

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
	roots    rootCounter
	reuse    reuseCounter
}

// run is a stretch of a prompt's blocks: first some that had been seen before,
// then fresh ones. Fresh blocks are numbered as they come, so a run's are
// consecutive from first. A prefix-chained prompt is one run: its hits and the
// rest. Only ids that are not chained have a seen block after a fresh one,
// which starts another run.
type run struct {
	seen, fresh int32
	// above is the last of the seen blocks, under which the fresh ones are said to
	// hang; first is the first of these. Each means something only where its
	// stretch has blocks.
	above, first uint32
}

// add follows the ids of the last of rows.
func (c *prefixCounter) add(rows []row, ids []uint64) {
	me := uint32(len(rows) - 1)
	rows[me].runs = uint32(len(c.runs))
	if ids == nil {
		return
	}
	rows[me].hasIDs = true
	c.requests++
	if len(ids) == 0 {
		return
	}
	c.total += len(ids)
	leading := true
	var now run
	var root uint32
	for i, id := range ids {
		number, last, seen := c.blocks.use(id, me)
		if i == 0 {
			root = number
		}
		if !seen {
			if now.fresh == 0 {
				now.first, leading = number, false
				if now.seen > 0 {
					c.blocks.repeated(now.above).runs++
				}
			}
			now.fresh++
			continue
		}
		if now.fresh > 0 {
			c.runs = append(c.runs, now)
			now = run{}
		}
		now.above = number
		now.seen++
		if leading {
			c.reuse.hit(rows, last)
		}
	}
	c.reuse.flush(rows)
	c.runs = append(c.runs, now)
	c.roots.add(ids[0], root, rows[me].isl)
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
func (c *prefixCounter) runWith(rows []row, number uint32) run {
	runs := c.runsOf(rows, int(c.blocks.owner(number)))
	for !runs[0].has(number) {
		runs = runs[1:]
	}
	return runs[0]
}

// result is nil where there are no blocks at all.
func (c *prefixCounter) result(rows []row, size trace.BlockSize, top int) (*Prefix, Context) {
	if c.total == 0 {
		return nil, Context{}
	}
	p := &Prefix{
		BlockSize:    size,
		Requests:     c.requests,
		TotalBlocks:  c.total,
		UniqueBlocks: c.blocks.unique(),
		Popularity:   c.popularity(rows, top),
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
		if blocks > 0 {
			requestRates += float64(hit) / float64(blocks)
		}
		p.HitBlocks += hit
		p.HitTokens += min(hit*size.Tokens, length)
		context := min(c.leadingRepeats(runs)*size.Tokens, length)
		contexts = append(contexts, float64(context))
		shared += context
		isl += length
	}
	p.Context = dist.Of(contexts)
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

// leadingRepeats is the number of leading blocks of a prompt that occur more
// than once among all blocks added.
func (c *prefixCounter) leadingRepeats(runs []run) int {
	n := 0
	for _, r := range runs {
		n += int(r.seen)
		for i := range uint32(r.fresh) {
			if c.blocks.repeated(r.first+i) == nil {
				return n
			}
			n++
		}
	}
	return n
}
