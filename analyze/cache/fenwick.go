package cache

// fenwick keeps sums of the beginnings of a list of counts (Fenwick, A New Data
// Structure for Cumulative Frequency Tables, 1994). Item i is at i+1; the length
// less one is a power of two.
type fenwick []uint32

// add adds n, which may be negative, to the count at i.
func (f fenwick) add(i, n int) {
	for i++; i < len(f); i += i & -i {
		f[i] += uint32(n)
	}
}

// sum is the sum of the counts 0..i.
func (f fenwick) sum(i int) int {
	n := uint32(0)
	for i++; i > 0; i &= i - 1 {
		n += f[i]
	}
	return int(n)
}

// grow makes room for n counts, a power of two and, but for the first time,
// twice as many as before. The new ones are 0.
func (f *fenwick) grow(n int) {
	grown := make(fenwick, n+1)
	copy(grown, *f)
	if half := len(*f) - 1; half > 0 {
		grown[n] = grown[half]
	}
	*f = grown
}
