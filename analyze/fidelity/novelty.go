package fidelity

import (
	"hash/maphash"
	"math"
	"sort"
)

// Novelty tells how much of a drawn trace is a copy of its source.
type Novelty struct {
	// Rows is the most successive requests that have the same ISL, OSL and time since
	// the arrival before as successive requests of the source. MaxRows is the largest
	// number that passes: 5, or three times that between the source's halves, for a
	// periodic source repeats itself.
	Rows, MaxRows int
}

// Pass reports whether the drawn trace is no copy.
func (n *Novelty) Pass() bool { return n.Rows <= n.MaxRows }

func noveltyOf(source, drawn *Trace) Novelty {
	seed := maphash.MakeSeed()
	own := source.rowKeys(seed)
	half := len(own) / 2
	return Novelty{Rows: longestCommonRun(own, drawn.rowKeys(seed)), MaxRows: max(5, 3*longestCommonRun(own[:half], own[half:]))}
}

// rowKeys returns a hash of each row.
func (t *Trace) rowKeys(seed maphash.Seed) []uint64 {
	keys := make([]uint64, len(t.rows))
	for i, r := range t.rows {
		since := -1.0
		if i > 0 {
			since = math.Round(1000 * (r.at - t.rows[i-1].at))
		}
		keys[i] = maphash.Comparable(seed, [3]float64{float64(r.isl), float64(r.osl), since})
	}
	return keys
}

// longestCommonRun returns the length of the longest sequence that is in both.
func longestCommonRun(a, b []uint64) int {
	return sort.Search(min(len(a), len(b)), func(n int) bool { return !haveCommonRun(a, b, n+1) })
}

func haveCommonRun(a, b []uint64, n int) bool {
	in := map[uint64]struct{}{}
	for _, h := range runHashes(a, n) {
		in[h] = struct{}{}
	}
	for _, h := range runHashes(b, n) {
		if _, found := in[h]; found {
			return true
		}
	}
	return false
}

// runHashes returns a hash of each n successive keys (Rabin and Karp 1987).
func runHashes(keys []uint64, n int) (hashes []uint64) {
	const base = 0x5851f42d4c957f2d
	power, h := uint64(1), uint64(0)
	for i, key := range keys {
		h = h*base + key
		if i < n {
			power *= base
		} else {
			h -= power * keys[i-n]
		}
		if i >= n-1 {
			hashes = append(hashes, h)
		}
	}
	return hashes
}
