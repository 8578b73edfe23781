// Package cache says what a prefix cache of a given size and policy would have
// hit on a trace.
//
// Start with [CurveBuilder]. It takes the requests of a trace one by one, their
// blocks numbered by package trace/block, and gives the exact hit rates of an
// LRU cache of every size at once:
//
//	var t block.Table
//	var b cache.CurveBuilder
//	var numbers []uint32
//	for r, err := range requests {
//		...
//		numbers = t.AppendNumbers(numbers[:0], r.HashIDs)
//		b.Add(numbers, r.InputLength)
//	}
//	curve := b.Curve(512)
//	fmt.Println(curve.At(10_000).Rates().Token, curve.SmallestByToken(0.95))
//
// The block size is asked for at the end, because a trace shows its own only
// when its last row is known.
//
// Other policies are simulated at given capacities by [Simulate], and a [Fleet]
// of many caches behind a router is compared by a [Comparer]. Both need a [Sequence], the trace
// in memory, for Belady's policy looks into the future. [ParseCapacity] reads
// "10000", "5Mtok" or "64GiB", and [KVOf] knows how many bytes a token takes in
// the caches of common models.
//
// # What a hit is
//
// All blocks of a request are looked up first, against what was cached before
// it arrived. Its hit is the number m of leading blocks that were there; the
// first miss ends it. Then all its blocks are inserted or refreshed from tail to
// head, in the order in which engines free them, so that a request's head
// outlives its tail. A block that a request names twice is looked up twice
// against the same state.
package cache
