package block_test

import (
	"testing"

	"moontide/trace/block"
)

func TestList(t *testing.T) {
	for _, n := range []int{0, 1, 4096, 4097, 10_000} {
		var l block.List[int]
		for i := range n {
			l.Add(2 * i)
		}
		next := 0
		for v := range l.All {
			if *v != 2*next {
				t.Fatalf("value %d is %d", next, *v)
			}
			next++
		}
		if next != n || l.Len() != n {
			t.Errorf("%d of %d values", next, n)
		}
		for _, i := range []int{0, 1, 4095, 4096, 4097, 8191, 9999, 10_000, 20_000} {
			if got, want := l.Search(func(v *int) bool { return *v >= 2*i }), min(i, n); got != want {
				t.Errorf("%d values, the first of at least %d is at %d, want %d", n, 2*i, got, want)
			}
		}
	}
}
