package prefix

// Core is the shared part of a [Tree], the prefixes of more than one request,
// as a radix tree with every chain contracted into one node.
type Core struct {
	// Nodes holds the root, which has no blocks, and then parents before their
	// children, which are in the order of their first visit.
	Nodes []CoreNode

	at []int32 // core node of each tree node, or the closest one above it
}

// CoreNode is a run of blocks that all its requests share from first to last.
type CoreNode struct {
	Parent int  // index in Core.Nodes; the root is its own parent
	Last   Node // the node of its last block in the tree
	Blocks int  // number of blocks in the run
	Depth  int  // blocks from the root up to and including its last
	// Visits is the number of requests. Of these, Ends end after the last
	// block, Unique continue with a block that no other request has, and the
	// rest continue to the node's children.
	Visits, Ends, Unique int
}

// Core contracts the blocks visited more than once: a block joins the run of
// the previous block if both are visited equally often. The result does not
// reflect later additions to the tree.
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

// coreNode returns a run that ends at n, ignoring its shared children.
func (t *Tree) coreNode(n Node) CoreNode {
	visits, ends := t.Visits(n), t.Ends(n)
	return CoreNode{Last: n, Depth: t.Depth(n), Visits: visits, Ends: ends, Unique: visits - ends}
}

// At returns the index in Nodes of the run that holds the tree node n or, if n
// is not shared, of the last run above it.
func (c *Core) At(n Node) int { return int(c.at[n]) }
