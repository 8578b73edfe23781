package analyze

import "moontide/trace/block"

// BlockFit reports how many rows a block size fits: rows with ISL / size block ids,
// rounded up or down. If it does not fit most rows, it is wrong, and so are all
// token counts derived from it.
type BlockFit struct {
	// Rows is the number of rows with ids; Fits is how many of them the size fits.
	Rows, Fits int
	// Better is a size that fits more rows, and BetterFits is how many: the size
	// that fits all rows or else the best power of two. Both are 0 if there is
	// none.
	Better, BetterFits int
}

// maxTried is the largest power of two to try. Engines use smaller blocks.
const maxTried = 16384

func (c *collector) blockFit(used block.Size) BlockFit {
	f := BlockFit{Rows: c.prefix.requests, Fits: c.fitting(used.Tokens)}
	if f.Fits == f.Rows {
		return f
	}
	try := func(tokens int) {
		if fits := c.fitting(tokens); fits > max(f.Fits, f.BetterFits) {
			f.Better, f.BetterFits = tokens, fits
		}
	}
	try(c.detector.Size().Tokens)
	for tokens := 1; tokens <= maxTried && f.BetterFits < f.Rows; tokens *= 2 {
		try(tokens)
	}
	return f
}

// fitting returns the number of rows that a block size fits.
func (c *collector) fitting(tokens int) int {
	n := 0
	for i, runs := range c.prefix.runs.byRow {
		isl := int(c.rows.at(i).isl)
		blocks, floor := countBlocks(runs), isl/tokens
		if blocks == floor || blocks == floor+1 && isl%tokens > 0 {
			n++
		}
	}
	return n
}
