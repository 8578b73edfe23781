package analyze

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/stats"
)

// Popularity describes how often blocks are used. Each prompt that contains a block
// uses it once.
type Popularity struct {
	// Uses is the number of uses of each unique block.
	Uses stats.Sample
	// Top lists the most used blocks in descending order, ties in order of first
	// use: at most [Options].Top blocks, all used more than once.
	Top []Block
	// Zipf is absent if fewer than three distinct numbers of uses exceed 1.
	Zipf trace.Opt[Zipf]
}

// Block is a block and its number of uses.
type Block struct {
	ID   uint64
	Uses int
	// Depth is the position in the first prompt with the block, from 1.
	Depth int
}

// Zipf is a power law of popularity: the number of uses of the r-th most used
// block is proportional to r^-Exponent.
//
// It is the least-squares line through ln(uses) against ln(rank) of the blocks
// used more than once (Breslau et al., "Web Caching and Zipf-like Distributions",
// INFOCOM 1999). Blocks with equal uses are one point at their mean rank.
type Zipf struct {
	Exponent float64
	// R2 is the line's coefficient of determination, 0..1. Below about 0.9 the
	// popularity does not follow Zipf's law.
	R2 float64
	// Points is the number of points of the fit.
	Points int
}

func (c *prefixCounter) popularity(table *block.Table, top int) Popularity {
	const few = 1 << 10
	var rarely [few]int // blocks by uses, if these are few
	rarely[1] = c.unique - c.repeated.Len()
	often := map[uint32]int{}
	for s := range c.repeated.All {
		if s.uses < few {
			rarely[s.uses]++
		} else {
			often[s.uses]++
		}
	}
	counted := make([]stats.Counted, 0, few+len(often))
	for uses, n := range rarely {
		if n > 0 {
			counted = append(counted, stats.Counted{Value: float64(uses), Count: n})
		}
	}
	for uses, n := range often {
		counted = append(counted, stats.Counted{Value: float64(uses), Count: n})
	}
	p := Popularity{Uses: stats.OfCounts(counted)} // which sorts them
	slices.Reverse(counted)
	p.Zipf = zipf(counted)
	p.Top = c.mostUsed(table, minUses(counted, top), top)
	return p
}

// zipf fits the numbers of blocks by uses, most uses first.
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
	intercept, slope := stat.LinearRegression(x, y, nil, false)
	return trace.Some(Zipf{Exponent: -slope, R2: stat.RSquared(x, y, nil, intercept, slope), Points: len(x)})
}

// minUses returns the number of uses from which a block may be among the top, given
// the numbers of blocks by uses, most uses first.
func minUses(counted []stats.Counted, top int) int {
	found := 0
	for _, c := range counted {
		if found += c.Count; found >= top {
			return max(2, int(c.Value))
		}
	}
	return 2
}

// mostUsed lists the top blocks. Only blocks with at least minUses uses, which are
// few, are sorted.
func (c *prefixCounter) mostUsed(table *block.Table, minUses, top int) []Block {
	var blocks []repeatedBlock
	for s := range c.repeated.All {
		if int(s.uses) >= minUses {
			blocks = append(blocks, *s)
		}
	}
	slices.SortFunc(blocks, func(a, b repeatedBlock) int {
		return cmp.Or(cmp.Compare(b.uses, a.uses), cmp.Compare(a.number, b.number))
	})
	blocks = blocks[:min(top, len(blocks))]
	numbers := make([]uint32, len(blocks))
	for i, s := range blocks {
		numbers[i] = s.number
	}
	var most []Block
	for i, id := range table.IDs(numbers) {
		most = append(most, Block{ID: id, Uses: int(blocks[i].uses), Depth: c.depth(numbers[i])})
	}
	return most
}

// depth returns the position of a block in the first prompt with it, from 1.
func (c *prefixCounter) depth(number uint32) int {
	with := c.runWith(number)
	depth := int(with.seen) + int(number-with.first) + 1
	for _, r := range c.runs.of(with.row) {
		if r.first == with.first && r.fresh > 0 {
			break
		}
		depth += int(r.seen) + int(r.fresh)
	}
	return depth
}
