// Package prefix counts the shared prefixes of a trace's prompts in a tree.
//
// Start with [New] and pass the block ids of each request to [Tree.Add]:
//
//	t := prefix.New()
//	t.Add([]uint64{7, 8, 9, 30})
//	n := t.Add([]uint64{7, 8})
//	t.Visits(n) // 2: both requests have the prefix 7 8
//
// [Tree.Core] returns the shared part as a radix tree of runs of blocks.
package prefix

import "math"

// Node is a distinct prefix of a [Tree]. Nodes are numbered from 1 in the order of
// their first visit, so a parent has a smaller number than its children.
type Node int32

// Root is the empty prefix, common to all requests.
const Root Node = 0

// Tree is a trie over blocks. The same id under two parents makes two nodes. A
// node takes 32 bytes, and more if it is not the first child. Concurrent reads
// are safe while nothing is added.
type Tree struct {
	nodes []node
	// later finds all children except the first of each parent. Most nodes have
	// one child, which needs no look-up.
	later map[edge]Node
}

type node struct {
	id      uint64
	parent  Node
	depth   int32
	visits  int32
	child   Node // the first one, or Root
	hasMore bool // more children, in Tree.later
}

type edge struct {
	parent Node
	id     uint64
}

// New returns a tree with only a root.
func New() *Tree {
	return &Tree{nodes: make([]node, 1), later: make(map[edge]Node)}
}

// Add counts one request's block ids and returns the node at which it ends,
// [Root] if there are none. It does not retain ids. A tree holds up to 2^31-1
// requests and as many nodes; Add panics beyond that.
func (t *Tree) Add(ids []uint64) Node {
	if t.nodes[Root].visits == math.MaxInt32 {
		panic("prefix: a tree holds at most 2^31-1 requests")
	}
	at := Root
	t.nodes[at].visits++
	for _, id := range ids {
		child, known := t.childOf(at, id)
		if !known {
			child = t.grow(at, id)
		}
		at = child
		t.nodes[at].visits++
	}
	return at
}

// grow appends a new child to parent.
func (t *Tree) grow(parent Node, id uint64) Node {
	if len(t.nodes) > math.MaxInt32 {
		panic("prefix: a tree holds at most 2^31-1 nodes")
	}
	n := Node(len(t.nodes))
	if p := &t.nodes[parent]; p.child == Root {
		p.child = n
	} else {
		p.hasMore = true
		t.later[edge{parent, id}] = n
	}
	t.nodes = append(t.nodes, node{id: id, parent: parent, depth: t.nodes[parent].depth + 1})
	return n
}

// childOf returns the child of n with the given block id, if there is one.
func (t *Tree) childOf(n Node, id uint64) (Node, bool) {
	at := &t.nodes[n]
	switch {
	case at.child != Root && t.nodes[at.child].id == id:
		return at.child, true
	case at.hasMore:
		child, ok := t.later[edge{n, id}]
		return child, ok
	}
	return Root, false
}

// Len returns the number of nodes, not counting the root. Nodes are numbered
// from 1 to Len.
func (t *Tree) Len() int { return len(t.nodes) - 1 }

// Parent returns the parent of n. The root is its own parent.
func (t *Tree) Parent(n Node) Node { return t.nodes[n].parent }

// Depth returns the length of the prefix n in blocks.
func (t *Tree) Depth(n Node) int { return int(t.nodes[n].depth) }

// Visits returns the number of requests with the prefix n.
func (t *Tree) Visits(n Node) int { return int(t.nodes[n].visits) }

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
	Parent int // index in Core.Nodes; the root is its own parent
	Blocks int // number of blocks in the run
	Depth  int // blocks from the root up to and including its last
	Visits int // number of requests
}

// Core contracts the blocks visited more than once: a block joins the run of
// the previous block if both are visited equally often. The result does not
// reflect later additions to the tree.
func (t *Tree) Core() *Core {
	c := &Core{Nodes: []CoreNode{{Visits: t.Visits(Root)}}, at: make([]int32, len(t.nodes))}
	for n := Root + 1; int(n) < len(t.nodes); n++ {
		parent, visits := t.Parent(n), t.Visits(n)
		above := c.at[parent]
		switch c.at[n] = above; {
		case visits < 2:
		case parent != Root && t.Visits(parent) == visits:
			c.Nodes[above].Blocks++
			c.Nodes[above].Depth++
		default:
			c.at[n] = int32(len(c.Nodes))
			c.Nodes = append(c.Nodes, CoreNode{Parent: int(above), Blocks: 1, Depth: t.Depth(n), Visits: visits})
		}
	}
	return c
}

// At returns the index in Nodes of the run that holds the tree node n or, if n
// is not shared, of the last run above it.
func (c *Core) At(n Node) int { return int(c.at[n]) }
