package prefix_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgregory.net/rapid"

	"moontide/synth/prefix"
)

func treeOf(paths ...[]uint64) *prefix.Tree {
	t := prefix.New()
	for _, ids := range paths {
		t.Add(ids)
	}
	return t
}

// example is a prompt shared at three depths, with unique continuations of one
// and two blocks.
var example = [][]uint64{{7, 8, 9, 30}, {7, 8}, {7, 8, 9}, {7, 40, 41}}

func pathOf(t *prefix.Tree, n prefix.Node) []uint64 {
	var ids []uint64
	for ; n != prefix.Root; n = t.Parent(n) {
		ids = append(ids, t.ID(n))
	}
	slices.Reverse(ids)
	return ids
}

// children returns the children of a node.
func children(t *prefix.Tree, n prefix.Node) (nodes []prefix.Node) {
	for child := n + 1; int(child) <= t.Len(); child++ {
		if t.Parent(child) == n {
			nodes = append(nodes, child)
		}
	}
	return nodes
}

func TestCore(t *testing.T) {
	root := func(visits, ends, unique int) prefix.CoreNode {
		return prefix.CoreNode{Visits: visits, Ends: ends, Unique: unique}
	}
	for name, c := range map[string]struct {
		paths [][]uint64
		want  []prefix.CoreNode
	}{
		"empty tree": {nil, []prefix.CoreNode{root(0, 0, 0)}},
		"one request shares nothing": {
			[][]uint64{{1, 2}}, []prefix.CoreNode{root(1, 0, 1)}},
		"requests without blocks end at the root": {
			[][]uint64{{}, {}, {1}}, []prefix.CoreNode{root(3, 2, 1)}},
		"three depths, nothing to contract": {
			example, []prefix.CoreNode{
				root(4, 0, 0),
				{Parent: 0, Last: 1, Blocks: 1, Depth: 1, Visits: 4, Unique: 1},
				{Parent: 1, Last: 2, Blocks: 1, Depth: 2, Visits: 3, Ends: 1},
				{Parent: 2, Last: 3, Blocks: 1, Depth: 3, Visits: 2, Ends: 1, Unique: 1},
			}},
		"a chain is one node, its last block may be an end": {
			[][]uint64{{1, 2, 3}, {1, 2, 3}}, []prefix.CoreNode{
				root(2, 0, 0),
				{Parent: 0, Last: 3, Blocks: 3, Depth: 3, Visits: 2, Ends: 2},
			}},
		"an end, a unique prompt or a fork closes a chain": {
			[][]uint64{
				{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 7}, {1, 2, 3, 4},
				{1, 2, 9}, {1, 2, 8, 8, 8}, {1, 2, 8, 8, 8},
			}, []prefix.CoreNode{
				root(6, 0, 0),
				{Parent: 0, Last: 2, Blocks: 2, Depth: 2, Visits: 6, Unique: 1},
				{Parent: 1, Last: 4, Blocks: 2, Depth: 4, Visits: 3, Ends: 1},
				{Parent: 2, Last: 5, Blocks: 1, Depth: 5, Visits: 2, Unique: 2},
				{Parent: 1, Last: 11, Blocks: 3, Depth: 5, Visits: 2, Ends: 2},
			}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, treeOf(c.paths...).Core().Nodes); diff != "" {
				t.Errorf("core (-want +got):\n%s", diff)
			}
		})
	}
}

// paths draws requests over few ids, so that prefixes are shared often and the
// same id stands under many parents.
func paths(t *rapid.T) [][]uint64 {
	return rapid.SliceOfN(rapid.SliceOfN(rapid.Uint64Range(0, 2), 0, 6), 0, 40).Draw(t, "paths")
}

func TestTreeCountsEveryPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests := paths(t)
		tree := prefix.New()
		visits, ends := make(map[string]int), make(map[string]int)
		for _, ids := range requests {
			if got := pathOf(tree, tree.Add(ids)); !slices.Equal(got, ids) {
				t.Fatalf("Add(%v) ends at %v", ids, got)
			}
			for i := range len(ids) + 1 {
				visits[fmt.Sprint(ids[:i])]++
			}
			ends[fmt.Sprint(ids)]++
		}
		visits["[]"] = len(requests)
		if tree.Len()+1 != len(visits) {
			t.Fatalf("%d prefixes, want %d", tree.Len()+1, len(visits))
		}
		for n := prefix.Root; int(n) <= tree.Len(); n++ {
			path := fmt.Sprint(pathOf(tree, n))
			if tree.Visits(n) != visits[path] || tree.Ends(n) != ends[path] {
				t.Fatalf("%s: %d visits, %d ends, want %d, %d",
					path, tree.Visits(n), tree.Ends(n), visits[path], ends[path])
			}
			checkChildren(t, tree, n)
		}
	})
}

// checkChildren wants Child to find each child of n, and every visit of n to end
// there or go on.
func checkChildren(t *rapid.T, tree *prefix.Tree, n prefix.Node) {
	left := tree.Visits(n) - tree.Ends(n)
	for _, child := range children(tree, n) {
		if tree.Depth(child) != tree.Depth(n)+1 {
			t.Fatalf("node %d (depth %d) is a child of %d (depth %d)", child, tree.Depth(child), n, tree.Depth(n))
		}
		if found, ok := tree.Child(n, tree.ID(child)); !ok || found != child {
			t.Fatalf("Child(%d, %d) = %d, %t, want %d", n, tree.ID(child), found, ok, child)
		}
		left -= tree.Visits(child)
	}
	if left != 0 {
		t.Fatalf("%d visits of node %d neither end nor go on", left, n)
	}
}

func TestCoreKeepsTheSharedBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := treeOf(paths(t)...)
		core := tree.Core()
		shared, blocks := 0, 0
		for n := prefix.Root + 1; int(n) <= tree.Len(); n++ {
			run := core.Nodes[core.At(n)]
			if tree.Visits(n) > 1 {
				shared++
			}
			if inside := tree.Depth(n) <= run.Depth; inside != (tree.Visits(n) > 1) {
				t.Fatalf("node %d with %d visits is inside core node %+v: %t", n, tree.Visits(n), run, inside)
			}
		}
		onward := make([]int, len(core.Nodes))
		for i, run := range core.Nodes[1:] {
			blocks += run.Blocks
			parent := core.Nodes[run.Parent]
			if run.Parent > i || run.Depth != parent.Depth+run.Blocks || run.Visits != tree.Visits(run.Last) {
				t.Fatalf("core node %+v does not follow %+v", run, parent)
			}
			if run.Visits == parent.Visits && run.Parent != 0 {
				t.Fatalf("core node %+v should be part of its parent %+v", run, parent)
			}
			onward[run.Parent] += run.Visits
		}
		if shared != blocks {
			t.Fatalf("the core has %d blocks, the tree %d that are shared", blocks, shared)
		}
		for i, run := range core.Nodes {
			if run.Ends != tree.Ends(run.Last) || run.Unique < 0 || run.Ends+run.Unique+onward[i] != run.Visits {
				t.Fatalf("of %+v, %d visits go on to children", run, onward[i])
			}
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	for _, blocks := range []int{1, 24, 240} {
		b.Run(fmt.Sprintf("blocks=%d", blocks), func(b *testing.B) {
			ids := make([]uint64, blocks)
			tree, next := prefix.New(), uint64(1)
			b.ReportAllocs()
			for b.Loop() {
				// Half of each path is shared with the paths before it.
				for i := blocks / 2; i < blocks; i++ {
					ids[i] = next
					next++
				}
				tree.Add(ids)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*blocks), "ns/block")
		})
	}
}
