package analyze

import (
	"cmp"
	"math"
	"slices"

	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/stats"
)

// Popularity is how often blocks are used. A block is used once by each prompt
// that has it.
type Popularity struct {
	// Uses is the number of uses of each unique block.
	Uses stats.Sample
	// Top are the blocks used most, most first, of equals the one that came
	// first; at most [Options].Top. A block that is used once is
	// not popular.
	Top []Block
	// Zipf is the law of the head, absent where less than three different
	// counts of uses are above 1.
	Zipf trace.Opt[Zipf]
}

// Block is a block and how often it is used.
type Block struct {
	ID uint64
	// Uses counts the block's uses; Depth is its place in a prompt, from 1 (in
	// the first, where ids are not chained to their prefix).
	Uses, Depth int
}

// Zipf is a power law of popularity: the block of rank r, the r-th most used
// one, has uses in proportion to r^-Exponent.
//
// It is the straight line through ln(uses) against ln(rank) by least squares, as
// is usual for requests to caches (Breslau et al., "Web Caching and Zipf-like
// Distributions: Evidence and Implications", INFOCOM 1999). The line is drawn
// through the head, the blocks used more than once. Blocks of equal uses are
// one point, at the mean of their ranks: otherwise the many blocks that are used
// twice would decide alone.
type Zipf struct {
	Exponent float64
	// R2 is the coefficient of determination of the line: 1 where all points lie
	// on it, 0 where it explains nothing. Below about 0.9 popularity is not Zipf's.
	R2 float64
	// Points is the number of points that the line was drawn through.
	Points int
}

func (c *prefixCounter) popularity(rows []row, table *block.Table, top int) Popularity {
	with := map[uint32]int{1: c.blocks.unique - c.blocks.shared.len}
	for s := range c.blocks.shared.all {
		with[s.uses]++
	}
	counted := make([]stats.Counted, 0, len(with))
	for uses, blocks := range with {
		counted = append(counted, stats.Counted{Value: float64(uses), Count: blocks})
	}
	p := Popularity{Uses: stats.OfCounts(counted)} // which sorts them
	slices.Reverse(counted)
	p.Zipf = zipf(counted)
	p.Top = c.mostUsed(rows, table, leastUses(counted, top), top)
	return p
}

// zipf fits the numbers of blocks that have the same uses, most uses first.
func zipf(counted []stats.Counted) trace.Opt[Zipf] {
	var x, y []float64
	above := 0
	for _, c := range counted {
		if c.Value < 2 {
			break
		}
		x = append(x, math.Log(float64(above)+float64(c.Count+1)/2))
		y = append(y, math.Log(c.Value))
		above += c.Count
	}
	if len(x) < 3 {
		return trace.Opt[Zipf]{}
	}
	slope, r2 := line(x, y)
	return trace.Some(Zipf{Exponent: -slope, R2: r2, Points: len(x)})
}

// line is the slope of the least-squares line through points that differ in
// both coordinates, and its coefficient of determination.
func line(x, y []float64) (slope, r2 float64) {
	var meanX, meanY float64
	for i := range x {
		meanX += x[i] / float64(len(x))
		meanY += y[i] / float64(len(y))
	}
	var xx, xy, yy float64
	for i := range x {
		dx, dy := x[i]-meanX, y[i]-meanY
		xx += dx * dx
		xy += dx * dy
		yy += dy * dy
	}
	return xy / xx, xy * xy / (xx * yy)
}

// leastUses is how often a block has to be used to be one of the top, known from
// the numbers of blocks that have the same uses, most uses first.
func leastUses(counted []stats.Counted, top int) int {
	found := 0
	for _, c := range counted {
		if found += c.Count; found >= top {
			return max(2, int(c.Value))
		}
	}
	return 2
}

// mostUsed lists the top blocks, all used at least so often; knowing that, only
// few have to be sorted.
func (c *prefixCounter) mostUsed(rows []row, table *block.Table, least, top int) []Block {
	var blocks []sharedBlock
	for s := range c.blocks.shared.all {
		if int(s.uses) >= least {
			blocks = append(blocks, *s)
		}
	}
	slices.SortFunc(blocks, func(a, b sharedBlock) int {
		return cmp.Or(cmp.Compare(b.uses, a.uses), cmp.Compare(a.number, b.number))
	})
	blocks = blocks[:min(top, len(blocks))]
	numbers := make([]uint32, len(blocks))
	for i, s := range blocks {
		numbers[i] = s.number
	}
	ids := table.IDs(numbers)
	var most []Block
	for i, s := range blocks {
		most = append(most, Block{ID: ids[i], Uses: int(s.uses), Depth: c.depth(rows, s.number)})
	}
	return most
}

// depth is the place of a block in the prompt that had it first, from 1.
func (c *prefixCounter) depth(rows []row, number uint32) int {
	with := c.runWith(number)
	depth := int(with.seen) + int(number-with.first) + 1
	for _, r := range c.runsOf(rows, int(with.row)) {
		if r.first == with.first && r.fresh > 0 {
			break
		}
		depth += int(r.seen) + int(r.fresh)
	}
	return depth
}
