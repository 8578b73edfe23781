package analyze

import (
	"moontide/trace"
)

// BlockFit is how well a block size goes with the number of ids of rows: a
// prompt has ISL / size of them, rounded up or down. A size that does not fit
// most rows is wrong, and with it all that is counted in tokens.
type BlockFit struct {
	// Rows have ids, and Fits of them as many as the size in use gives.
	Rows, Fits int
	// Better is a size that fits more rows, BetterFits of them: the one that fits
	// all, or the best of powers of two. It is 0 where none was found.
	Better, BetterFits int
}

// largestTried is the largest power of two that is tried where no size fits all
// rows. Engines use smaller ones.
const largestTried = 16384

func (c *collector) blockFit(used trace.BlockSize) BlockFit {
	f := BlockFit{Rows: c.prefix.requests, Fits: c.fitting(used.Tokens)}
	if f.Fits == f.Rows {
		return f
	}
	f.BetterFits = f.Fits
	try := func(tokens int) {
		if fits := c.fitting(tokens); fits > f.BetterFits {
			f.Better, f.BetterFits = tokens, fits
		}
	}
	try(c.detector.BlockSize().Tokens)
	for tokens := 1; tokens <= largestTried && f.BetterFits < f.Rows; tokens *= 2 {
		try(tokens)
	}
	if f.Better == 0 {
		f.BetterFits = 0
	}
	return f
}

// fitting counts the rows with ids that blocks of so many tokens fit.
func (c *collector) fitting(tokens int) int {
	n := 0
	for i, r := range c.rows {
		if !r.hasIDs {
			continue
		}
		blocks, floor := countBlocks(c.prefix.runsOf(c.rows, i)), int(r.isl)/tokens
		if blocks == floor || blocks == floor+1 && int(r.isl)%tokens > 0 {
			n++
		}
	}
	return n
}
