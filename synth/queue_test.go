package synth_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/synth"
)

// TestQueueOrder mixes pushes and pops and compares with a stable sort.
func TestQueueOrder(t *testing.T) {
	type item struct {
		at     float64
		number int
	}
	rapid.Check(t, func(t *rapid.T) {
		var q synth.Queue[item]
		var want []item
		for i, at := range rapid.SliceOf(rapid.IntRange(-3, 9)).Draw(t, "times, or pop") {
			if at >= 0 {
				x := item{float64(at), i}
				q.Push(x.at, x)
				want = append(want, x)
				slices.SortStableFunc(want, func(a, b item) int { return cmp.Compare(a.at, b.at) })
			}
			if q.Len() != len(want) {
				t.Fatalf("length is %d, want %d", q.Len(), len(want))
			}
			if len(want) == 0 {
				continue
			}
			if at, first := q.First(); *first != want[0] || at != want[0].at {
				t.Fatalf("first is %v, want %v", *first, want[0])
			}
			if at < 0 {
				if at, got := q.Pop(); got != want[0] || at != want[0].at {
					t.Fatalf("got %v, want %v", got, want[0])
				}
				want = want[1:]
			}
		}
	})
}
