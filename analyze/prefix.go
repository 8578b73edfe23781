package analyze

import "moontide/trace"

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
	blocks  blockSet
	prompts []prompt
	runs    []run
	total   int
}

// prompt is a request's ISL and the number of its runs.
type prompt struct{ isl, runs int32 }

// run is a stretch of a prompt's blocks: first some that had been seen before,
// then fresh ones, whose ids are consecutive from firstFresh. With the ids of
// the Mooncake format, numbered by first use, a whole prompt is one run: its
// hits and the rest. A gap between fresh ids starts another run, and so does a
// seen block after a fresh one, which no prefix-chained trace has.
//
// Only fresh ids need to be kept: a block seen before is already known to occur
// more than once.
type run struct {
	firstFresh  uint64
	seen, fresh int32
}

func (c *prefixCounter) add(r trace.Request) {
	if r.HashIDs == nil {
		return
	}
	c.total += len(r.HashIDs)
	before := len(c.runs)
	var now run
	for _, id := range r.HashIDs {
		seen := c.blocks.add(id)
		if now.fresh > 0 && (seen || id != now.firstFresh+uint64(now.fresh)) {
			c.runs = append(c.runs, now)
			now = run{}
		}
		switch {
		case seen:
			now.seen++
		case now.fresh == 0:
			now.firstFresh, now.fresh = id, 1
		default:
			now.fresh++
		}
	}
	if len(r.HashIDs) > 0 {
		c.runs = append(c.runs, now)
	}
	c.prompts = append(c.prompts, prompt{isl: int32(r.InputLength), runs: int32(len(c.runs) - before)})
}

// result is absent where there are no blocks at all.
func (c *prefixCounter) result(size trace.BlockSize) (*Prefix, Context) {
	if c.total == 0 {
		return nil, Context{}
	}
	p := &Prefix{
		BlockSize:    size,
		Requests:     len(c.prompts),
		TotalBlocks:  c.total,
		UniqueBlocks: c.blocks.unique,
	}
	var isl, shared int
	var requestRates float64
	next := 0
	for _, r := range c.prompts {
		runs := c.runs[next : next+int(r.runs)]
		next += int(r.runs)
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
		p.HitTokens += min(hit*size.Tokens, int(r.isl))
		shared += min(c.leadingRepeats(runs)*size.Tokens, int(r.isl))
		isl += int(r.isl)
	}
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
		for i := range uint64(r.fresh) {
			if !c.blocks.repeated(r.firstFresh + i) {
				return n
			}
			n++
		}
	}
	return n
}
