package trace

import "slices"

// forest holds disjoint sets of numbers as trees: each number points towards the
// smallest one of its set, which points to itself.
type forest []int32

// grow adds numbers below n, each a set of its own.
func (f *forest) grow(n int32) {
	*f = slices.Grow(*f, max(int(n)-len(*f), 0))
	for i := int32(len(*f)); i < n; i++ {
		*f = append(*f, i)
	}
}

// first returns the smallest number of a set.
func (f forest) first(n int32) int32 {
	for f[n] != n {
		f[n] = f[f[n]]
		n = f[n]
	}
	return n
}

// join makes two sets one and returns its smallest number.
func (f forest) join(a, b int32) int32 {
	a, b = f.first(a), f.first(b)
	f[max(a, b)] = min(a, b)
	return min(a, b)
}
