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
		if l.Len() != n {
			t.Errorf("%d of %d values", l.Len(), n)
		}
		for i := range n {
			if v := *l.At(uint32(i)); v != 2*i {
				t.Fatalf("value %d is %d", i, v)
			}
		}
		for _, i := range []int{0, 1, 4095, 4096, 4097, 8191, 9999, 10_000, 20_000} {
			if got, want := l.Search(func(v *int) bool { return *v >= 2*i }), min(i, n); got != want {
				t.Errorf("%d values, the first of at least %d is at %d, want %d", n, 2*i, got, want)
			}
		}
	}
}
