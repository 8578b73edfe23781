package analyze

import (
	"moontide/trace/stats"
)

// Tree is the tree of prefixes: a node is a block, under the block that comes
// before it, so that a path from a root is a prompt's beginning. Where ids are
// not chained to their prefix and one follows several blocks, it counts once,
// where it was first.
type Tree struct {
	// Nodes is the number of unique blocks, Roots that of first blocks, and
	// Leaves that of blocks that nothing ever follows.
	Nodes, Roots, Leaves int
	// Forks is the number of blocks that several different ones follow.
	Forks int
	// Depth is the depth of each node and LeafDepth that of each leaf, in
	// blocks; a root's is 1.
	Depth, LeafDepth stats.Sample
	// Children is the number of different blocks that follow a node, for each
	// node that is not a leaf: its branching.
	Children stats.Sample
}

// tree counts by runs. A run of fresh blocks is a chain that hangs under a block
// or is a root's; only its last block can be a leaf.
func (c *prefixCounter) tree(rows []row) Tree {
	t := Tree{Nodes: c.blocks.unique}
	var starts, ends, leaves []int // of runs, by depth
	for i := range rows {
		depth := 0
		for _, r := range c.runsOf(rows, i) {
			depth += int(r.seen)
			if r.fresh == 0 {
				continue
			}
			if depth == 0 {
				t.Roots++
			}
			starts = count(starts, depth+1)
			depth += int(r.fresh)
			ends = count(ends, depth)
			if c.children(r, r.end()-1) == 0 {
				t.Leaves++
				leaves = count(leaves, depth)
			}
		}
	}
	t.Depth = ofCounts(nodesAt(starts, ends))
	t.LeafDepth = ofCounts(leaves)
	children := make([]int, 2)
	for s := range c.blocks.shared.all {
		if s.runs == 0 { // one child at most
			continue
		}
		if n := c.children(c.runs[s.run], s.number); n > 1 {
			t.Forks++
			children = count(children, n)
		}
	}
	children[1] = t.Nodes - t.Leaves - t.Forks
	t.Children = ofCounts(children)
	return t
}

// children is the number of different blocks that follow a block, which was
// fresh in a run: the next one of the run, and one for each run that hangs under
// it.
func (c *prefixCounter) children(r run, number uint32) int {
	n := 0
	if s := c.blocks.repeated(number); s != nil {
		n = int(s.runs)
	}
	if number+1 < r.end() {
		n++
	}
	return n
}

// nodesAt returns how many nodes there are at each depth, from the depths at
// which chains start and end.
func nodesAt(starts, ends []int) []int {
	nodes := make([]int, len(ends))
	now := 0
	for depth := range ends {
		if depth < len(starts) {
			now += starts[depth]
		}
		nodes[depth] = now
		now -= ends[depth]
	}
	return nodes
}

// count adds one to the count of i, making room for it.
func count(counts []int, i int) []int {
	for len(counts) <= i {
		counts = append(counts, 0)
	}
	counts[i]++
	return counts
}
