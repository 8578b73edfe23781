package fidelity

import (
	"math"
	"slices"
	"sort"

	"moontide/trace/stats"
)

// Novelty tells how much of a drawn trace is a copy of its source.
type Novelty struct {
	// Rows is the most successive requests that have the same ISL, OSL and time since
	// the arrival before as successive requests of the source. MaxRows is the largest
	// number that passes: 5, or twice that of the source's rows in random order, or three
	// times that between its halves, for a strictly periodic source repeats itself.
	Rows, MaxRows int
	// Blocks is the most successive blocks of a prompt, each an extension of the one
	// before, that are in the source with the same ids, except for blocks that several
	// sessions of the source share (templates). Any fails.
	Blocks int
	// Sequential is set if both traces number their blocks one after another, from
	// numbers so close that some are equal. These are no sign of a copy then, and Blocks
	// is not judged.
	Sequential bool
}

// Pass reports whether the drawn trace copies nothing.
func (n *Novelty) Pass() bool { return n.Rows <= n.MaxRows && (n.Sequential || n.Blocks == 0) }

// minCopiedRows is the largest number of equal successive rows that always passes.
const minCopiedRows = 5

func noveltyOf(source, drawn *Trace) Novelty {
	own := source.rowKeys(nil)
	order := make([]int32, source.Requests())
	for i := range order {
		order[i] = int32(i)
	}
	stats.NewStream(0, "novelty").Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	half := len(own) / 2
	n := Novelty{Rows: longestCommonRun(own, drawn.rowKeys(nil))}
	n.MaxRows = max(minCopiedRows, 2*longestCommonRun(own, source.rowKeys(order)), 3*longestCommonRun(own[:half], own[half:]))
	n.Sequential = source.sequential() && drawn.sequential() && source.overlaps(drawn)
	n.Blocks = copiedBlocks(source, drawn)
	return n
}

// rowKeys returns a hash of each row, in an order if one is given.
func (t *Trace) rowKeys(order []int32) []uint64 {
	keys := make([]uint64, t.Requests())
	for i := range keys {
		row := i
		if order != nil {
			row = int(order[i])
		}
		since := -1.0
		if row > 0 {
			since = math.Round(1000 * (t.at[row] - t.at[row-1]))
		}
		keys[i] = mix(mix(mix(uint64(t.isl[row]))+uint64(t.osl[row])) + math.Float64bits(since))
	}
	return keys
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// longestCommonRun returns the length of the longest sequence that is in both.
func longestCommonRun(a, b []uint64) int {
	return sort.Search(min(len(a), len(b)), func(n int) bool { return !haveCommonRun(a, b, n+1) })
}

func haveCommonRun(a, b []uint64, n int) bool {
	in := map[uint64]struct{}{}
	for h := range runHashes(a, n) {
		in[h] = struct{}{}
	}
	found := false
	for h := range runHashes(b, n) {
		if _, found = in[h]; found {
			break
		}
	}
	return found
}

// runHashes yields a hash of each n successive keys (Rabin and Karp 1987).
func runHashes(keys []uint64, n int) func(yield func(uint64) bool) {
	const base = 0x5851f42d4c957f2d
	return func(yield func(uint64) bool) {
		power, h := uint64(1), uint64(0)
		for range n {
			power *= base
		}
		for i, key := range keys {
			h = h*base + key
			if i >= n {
				h -= power * keys[i-n]
			}
			if i >= n-1 && !yield(h) {
				return
			}
		}
	}
}

// sequential reports whether ids are numbers given one after another.
func (t *Trace) sequential() bool {
	if len(t.ids) == 0 {
		return false
	}
	return slices.Max(t.ids)-slices.Min(t.ids) < 4*uint64(len(t.ids))
}

// overlaps reports whether the ranges of the ids of two traces overlap.
func (t *Trace) overlaps(other *Trace) bool {
	return slices.Min(t.ids) <= slices.Max(other.ids) && slices.Min(other.ids) <= slices.Max(t.ids)
}

// copiedBlocks returns [Novelty.Blocks].
func copiedBlocks(source, drawn *Trace) (longest int) {
	after := source.ownEdges()
	for i := range drawn.at {
		copied, before := 0, uint64(0)
		for _, number := range drawn.blocksOf(i) {
			id := drawn.ids[number]
			if _, known := after[edge{before, id}]; known {
				copied++
				longest = max(longest, copied)
			} else {
				copied = 0
			}
			before = id
		}
	}
	return longest
}

// edge is a block and the one before it, 0 for none.
type edge struct{ before, id uint64 }

// ownEdges returns the blocks that only one session has.
func (t *Trace) ownEdges() map[edge]struct{} {
	owner, shared := make([]int32, len(t.ids)), make([]bool, len(t.ids))
	for i := range t.at {
		session := t.session[i]
		if session < 0 {
			session = int32(i)
		}
		for _, n := range t.blocksOf(i) {
			shared[n] = shared[n] || owner[n] != 0 && owner[n] != session+1
			owner[n] = session + 1
		}
	}
	edges := map[edge]struct{}{}
	for i := range t.at {
		before := uint64(0)
		for _, n := range t.blocksOf(i) {
			if !shared[n] {
				edges[edge{before, t.ids[n]}] = struct{}{}
			}
			before = t.ids[n]
		}
	}
	return edges
}
