package analyze

import "moontide/trace/stats"

// Tree describes the tree of prefixes: a node is a block and its parent the
// preceding block, so a path from a root is the beginning of a prompt. An id that
// follows several blocks (not chained to its prefix) is one node, at its first
// occurrence.
type Tree struct {
	// Nodes is the number of unique blocks, Leaves that of blocks without children, and
	// Forks that of blocks with several.
	Nodes, Leaves, Forks int
	// LeafDepth is the depth of each leaf in blocks; a root has depth 1.
	LeafDepth stats.Sample
}

// tree counts by runs: the new blocks of a run are a chain below a block, or from
// a root. Only the last of them can be a leaf.
func (c *prefixCounter) tree() Tree {
	t := Tree{Nodes: c.unique}
	var leaves counts // by depth
	for _, runs := range c.runs.byRow {
		depth := 0
		for _, r := range runs {
			depth += int(r.seen)
			if r.fresh == 0 {
				continue
			}
			depth += int(r.fresh)
			if c.children(r, r.end()-1) == 0 {
				t.Leaves++
				leaves.add(depth, 1)
			}
		}
	}
	t.LeafDepth = leaves.sample()
	for s := range c.repeated.All {
		if s.runs == 0 { // at most one child
			continue
		}
		if c.children(c.runs.at(s.run), s.number) > 1 {
			t.Forks++
		}
	}
	return t
}

// children returns the number of children of a block that was new in a run: the
// next one of the run, and the first of each run of new blocks below it.
func (c *prefixCounter) children(r run, number uint32) int {
	n := 0
	if s := c.repeatedBlock(number); s != nil {
		n = int(s.runs)
	}
	if number+1 < r.end() {
		n++
	}
	return n
}
