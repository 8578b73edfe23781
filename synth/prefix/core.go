package prefix

// Core is the shared part of a [Tree] as a radix tree: the prefixes of more than
// one request, with every chain contracted into one node.
type Core struct {
	// Nodes has the root first, which has no blocks, and parents before their
	// children, which are in the order of their first visit.
	Nodes []CoreNode

	at []int32 // of each tree node: its core node, or the one above it
}

// CoreNode is a run of blocks that all its requests share from first to last.
type CoreNode struct {
	Parent int  // index in Core.Nodes; the root is its own
	Last   Node // the node of its last block in the tree
	Blocks int  // how many blocks it stands for
	Depth  int  // blocks from the root up to and including its last
	// Visits counts its requests: Ends end after its last block, Unique continue
	// with a block that no other request has, the others continue to its children.
	Visits, Ends, Unique int
}

// Core contracts the blocks visited more than once: a block joins the run of the
// block before it if both are visited equally often. The result does not follow
// the tree's later growth.
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

// coreNode returns a run that ends at n, as if it had no shared children.
func (t *Tree) coreNode(n Node) CoreNode {
	visits, ends := t.Visits(n), t.Ends(n)
	return CoreNode{Last: n, Depth: t.Depth(n), Visits: visits, Ends: ends, Unique: visits - ends}
}

// At returns the index in Nodes of the run that holds the tree's node n, or of
// the last run above n if that is not shared.
func (c *Core) At(n Node) int { return int(c.at[n]) }
