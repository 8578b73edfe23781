// Package prefix keeps the prompts of a trace as a tree of shared prefixes:
// who extends whom, and how often.
//
// Start with [New] and give [Tree.Add] the block ids of each request. Walk the
// tree with [Tree.Children], from [Root], or simply count through its nodes:
// they are numbered as they were first visited, parents before children.
//
//	t := prefix.New()
//	t.Add([]uint64{7, 8, 9, 30})
//	t.Add([]uint64{7, 8})
//	t.Visits(t.Find([]uint64{7, 8, 1})) // 2: both requests have the prefix 7 8
//
// [Tree.Core] is the shared part alone, as a radix tree whose nodes are runs of
// blocks: what a model of prefix sharing is made from.
package prefix

import (
	"iter"
	"math"
)

// Node names a distinct prefix of a [Tree]: the path of blocks from the root.
// Nodes are numbered from 1 in the order of their first visit, so a node's
// parent has a smaller number than the node.
type Node int32

// Root is the empty prefix, which every request has.
const Root Node = 0

// Tree is a trie over blocks. A node is a parent and a block id, so that the
// same id under two parents, as in a trace whose ids are not chained to their
// prefix, is two nodes. It takes 32 bytes a node, and more for the second and
// later children of a node. Any number of goroutines may read a tree that none
// adds to.
type Tree struct {
	nodes []node
	// later finds every child but the first of its parent. Most prefixes have
	// one way on, and following it needs no look-up.
	later map[edge]Node
}

type node struct {
	id           uint64
	parent       Node
	depth        int32
	visits, ends int32
	// The children are a ring in the order of their first visit: from lastChild
	// the next sibling is the first child. Root, which is no child, means none.
	lastChild, sibling Node
}

type edge struct {
	parent Node
	id     uint64
}

// New returns a tree that has only its root.
func New() *Tree {
	return &Tree{nodes: make([]node, 1), later: make(map[edge]Node)}
}

// Add visits the path of one request's block ids, growing the tree where it is
// new, and returns the node at which the request ends: [Root] if it has no
// blocks. It keeps nothing of ids. A tree holds up to 2^31-1 requests and as
// many nodes; Add panics beyond.
func (t *Tree) Add(ids []uint64) Node {
	if t.nodes[Root].visits == math.MaxInt32 {
		panic("prefix: a tree holds at most 2^31-1 requests")
	}
	at := Root
	t.nodes[at].visits++
	for _, id := range ids {
		child, known := t.Child(at, id)
		if !known {
			child = t.grow(at, id)
		}
		at = child
		t.nodes[at].visits++
	}
	t.nodes[at].ends++
	return at
}

// grow gives parent a new last child.
func (t *Tree) grow(parent Node, id uint64) Node {
	if len(t.nodes) > math.MaxInt32 {
		panic("prefix: a tree holds at most 2^31-1 nodes")
	}
	n := Node(len(t.nodes))
	first := n
	if last := t.nodes[parent].lastChild; last != Root {
		first = t.nodes[last].sibling
		t.nodes[last].sibling = n
		t.later[edge{parent, id}] = n
	}
	t.nodes = append(t.nodes, node{
		id: id, parent: parent, depth: t.nodes[parent].depth + 1, sibling: first,
	})
	t.nodes[parent].lastChild = n
	return n
}

// Child returns the node that the block id leads to from n, if there is one.
func (t *Tree) Child(n Node, id uint64) (Node, bool) {
	last := t.nodes[n].lastChild
	if last == Root {
		return Root, false
	}
	first := t.nodes[last].sibling
	if t.nodes[first].id == id {
		return first, true
	}
	if first == last {
		return Root, false
	}
	child, ok := t.later[edge{n, id}]
	return child, ok
}

// Find returns the longest prefix of ids that the tree has. Its [Tree.Depth] is
// the number of leading blocks that an infinite cache would hit.
func (t *Tree) Find(ids []uint64) Node {
	at := Root
	for _, id := range ids {
		child, known := t.Child(at, id)
		if !known {
			break
		}
		at = child
	}
	return at
}

// Children yields the nodes one block longer than n, in the order of their
// first visit. The tree must not grow meanwhile.
func (t *Tree) Children(n Node) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		last := t.nodes[n].lastChild
		if last == Root {
			return
		}
		for child := t.nodes[last].sibling; yield(child) && child != last; {
			child = t.nodes[child].sibling
		}
	}
}

// Len returns the number of nodes without the root, which is the number of
// distinct prefixes in blocks. The nodes are 1 to Len.
func (t *Tree) Len() int { return len(t.nodes) - 1 }

// ID returns the id of n's last block. The root has none and says 0.
func (t *Tree) ID(n Node) uint64 { return t.nodes[n].id }

// Parent returns the prefix one block shorter than n. The root is its own.
func (t *Tree) Parent(n Node) Node { return t.nodes[n].parent }

// Depth returns the length of the prefix n in blocks.
func (t *Tree) Depth(n Node) int { return int(t.nodes[n].depth) }

// Visits returns the number of requests that have the prefix n.
func (t *Tree) Visits(n Node) int { return int(t.nodes[n].visits) }

// Ends returns the number of requests whose blocks are the prefix n and no more.
func (t *Tree) Ends(n Node) int { return int(t.nodes[n].ends) }
