package prefix

// Core is the shared part of a [Tree] as a radix tree: the prefixes that more
// than one request has, with every chain contracted into one node. What hangs
// under it belongs to one request alone.
type Core struct {
	// Nodes has the root first, which has no blocks, and every parent before
	// its children, which are in the order of their first visit.
	Nodes []CoreNode

	at []int32 // of each tree node: its core node, or the one that it hangs under
}

// CoreNode is a run of one or more blocks that requests enter at its first and
// leave only after its last.
type CoreNode struct {
	Parent int  // index in Core.Nodes; the root is its own
	Last   Node // the node of its last block in the tree
	Blocks int  // how many blocks it stands for
	Depth  int  // blocks from the root up to and including its last
	// Visits counts the requests that come through. Of these, Ends end after
	// its last block and Unique go on to a block that no other request has; the
	// others go on to its children.
	Visits, Ends, Unique int
}

// Core contracts the blocks visited more than once. A block joins the run of
// the block before it when all requests go on to it from there, which is to
// say when both are visited as often. The result does not follow the tree's
// later growth.
func (t *Tree) Core() *Core {
	c := &Core{Nodes: []CoreNode{t.coreNode(Root)}, at: make([]int32, len(t.nodes))}
	for n := Root + 1; int(n) < len(t.nodes); n++ {
		parent := t.Parent(n)
		above := c.at[parent]
		c.at[n] = above
		visits := t.Visits(n)
		if visits < 2 {
			continue
		}
		run := t.coreNode(n)
		if parent != Root && t.Visits(parent) == visits {
			run.Parent = c.Nodes[above].Parent
			run.Blocks = c.Nodes[above].Blocks + 1
			c.Nodes[above] = run
			continue
		}
		run.Parent = int(above)
		run.Blocks = 1
		c.Nodes[above].Unique -= visits
		c.at[n] = int32(len(c.Nodes))
		c.Nodes = append(c.Nodes, run)
	}
	return c
}

// coreNode returns a run that ends at n, as if nothing shared came after it.
func (t *Tree) coreNode(n Node) CoreNode {
	visits, ends := t.Visits(n), t.Ends(n)
	return CoreNode{Last: n, Depth: t.Depth(n), Visits: visits, Ends: ends, Unique: visits - ends}
}

// At returns the index in Nodes of the run that holds the tree's node n or,
// where n belongs to one request alone, of the last run above it.
func (c *Core) At(n Node) int { return int(c.at[n]) }
