package prefix_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgregory.net/rapid"

	"moontide/synth/prefix"
)

// A tree counts every prefix, and its core is the example's: a prompt shared at three
// depths, with unique continuations.
func TestCore(t *testing.T) {
	for name, c := range map[string]struct {
		paths [][]uint64
		want  []prefix.CoreNode
	}{
		"empty tree":                 {nil, []prefix.CoreNode{{}}},
		"one request shares nothing": {[][]uint64{{1, 2}}, []prefix.CoreNode{{Visits: 1}}},
		"three depths, nothing to contract": {
			[][]uint64{{7, 8, 9, 30}, {7, 8}, {7, 8, 9}, {7, 40, 41}},
			[]prefix.CoreNode{{Visits: 4}, {Parent: 0, Blocks: 1, Depth: 1, Visits: 4}, {Parent: 1, Blocks: 1, Depth: 2, Visits: 3}, {Parent: 2, Blocks: 1, Depth: 3, Visits: 2}}},
		"a chain is one node": {[][]uint64{{1, 2, 3}, {1, 2, 3}}, []prefix.CoreNode{{Visits: 2}, {Parent: 0, Blocks: 3, Depth: 3, Visits: 2}}},
		"an end, a unique prompt or a fork closes a chain": {
			[][]uint64{
				{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 7}, {1, 2, 3, 4},
				{1, 2, 9}, {1, 2, 8, 8, 8}, {1, 2, 8, 8, 8},
			},
			[]prefix.CoreNode{
				{Visits: 6}, {Parent: 0, Blocks: 2, Depth: 2, Visits: 6}, {Parent: 1, Blocks: 2, Depth: 4, Visits: 3},
				{Parent: 2, Blocks: 1, Depth: 5, Visits: 2}, {Parent: 1, Blocks: 3, Depth: 5, Visits: 2},
			}},
	} {
		tree := prefix.New()
		for _, ids := range c.paths {
			tree.Add(ids)
		}
		if diff := cmp.Diff(c.want, tree.Core().Nodes); diff != "" {
			t.Errorf("%s: core (-want +got):\n%s", name, diff)
		}
	}
}

// Draws over few ids, so that prefixes are shared often and the same id stands under many
// parents. All shared blocks are in the core, and no others.
func TestTreeCountsEveryPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := prefix.New()
		visits, nodes := map[string]int{}, map[string]prefix.Node{}
		for _, ids := range rapid.SliceOfN(rapid.SliceOfN(rapid.Uint64Range(0, 2), 0, 6), 0, 40).Draw(t, "paths") {
			n := tree.Add(ids)
			if tree.Depth(n) != len(ids) {
				t.Fatalf("Add(%v) ends at a depth of %d", ids, tree.Depth(n))
			}
			for i := range slices.Backward(append(slices.Clone(ids), 0)) {
				path := fmt.Sprint(ids[:i])
				if other, known := nodes[path]; known && other != n {
					t.Fatalf("%s has the nodes %d and %d", path, other, n)
				}
				visits[path], nodes[path] = visits[path]+1, n
				n = tree.Parent(n)
			}
		}
		core, shared := tree.Core(), 0
		for path, n := range nodes {
			run := core.Nodes[core.At(n)]
			if tree.Visits(n) != visits[path] {
				t.Fatalf("%s: %d visits, want %d", path, tree.Visits(n), visits[path])
			}
			if inside := tree.Depth(n) <= run.Depth; n != prefix.Root && inside != (visits[path] > 1) {
				t.Fatalf("%s with %d visits is inside core node %+v: %t", path, visits[path], run, inside)
			}
			if n != prefix.Root && visits[path] > 1 {
				shared++
			}
		}
		for _, run := range core.Nodes[1:] {
			shared -= run.Blocks
		}
		if shared != 0 || tree.Len() != max(0, len(nodes)-1) {
			t.Fatalf("%d prefixes, want %d; %d shared blocks are not in the core", tree.Len(), len(nodes)-1, shared)
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
