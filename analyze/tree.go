package analyze

import "moontide/trace/stats"

// Tree describes the tree of prefixes: a node is a block and its parent the
// preceding block, so a path from a root is the beginning of a prompt. An id that
// follows several blocks (not chained to its prefix) is one node, at its first
// occurrence.
type Tree struct {
	// Nodes is the number of unique blocks, Roots the number of first blocks, and
	// Leaves the number of blocks without children.
	Nodes, Roots, Leaves int
	// Forks is the number of blocks with several children.
	Forks int
	// Depth is the depth of each node and LeafDepth that of each leaf, in blocks; a
	// root has depth 1.
	Depth, LeafDepth stats.Sample
	// Children is the number of children of each inner node.
	Children stats.Sample
}

// tree counts by runs: the new blocks of a run are a chain below a block, or from
// a root. Only the last of them can be a leaf.
func (c *prefixCounter) tree() Tree {
	t := Tree{Nodes: c.unique}
	var nodes, leaves counts // by depth; of nodes only the changes until summed
	for _, runs := range c.runs.byRow {
		depth := 0
		for _, r := range runs {
			depth += int(r.seen)
			if r.fresh == 0 {
				continue
			}
			if depth == 0 {
				t.Roots++
			}
			nodes.add(depth+1, 1)
			depth += int(r.fresh)
			nodes.add(depth+1, -1)
			if c.children(r, r.end()-1) == 0 {
				t.Leaves++
				leaves.add(depth, 1)
			}
		}
	}
	for depth := range nodes[1:] {
		nodes[depth+1] += nodes[depth]
	}
	t.Depth, t.LeafDepth = nodes.sample(), leaves.sample()
	var children counts
	for s := range c.repeated.All {
		if s.runs == 0 { // at most one child
			continue
		}
		if n := c.children(c.runs.at(s.run), s.number); n > 1 {
			t.Forks++
			children.add(n, 1)
		}
	}
	children.add(1, t.Nodes-t.Leaves-t.Forks)
	t.Children = children.sample()
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
