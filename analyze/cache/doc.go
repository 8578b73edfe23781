// Package cache computes the hit rates that a prefix cache of a given size and
// eviction policy would have on a trace.
//
// A [CurveBuilder] takes the requests one by one, their blocks numbered by package
// trace/block, and gives the exact hit rates of LRU caches of all sizes:
//
//	var table block.Table
//	var b cache.CurveBuilder
//	var numbers []uint32
//	for r, err := range requests {
//		...
//		numbers = table.AppendNumbers(numbers[:0], r.HashIDs)
//		b.Add(numbers, r.InputLength)
//	}
//	curve := b.Curve(512)
//	fmt.Println(curve.At(10_000).Rates().Token, curve.SmallestByToken(0.95))
//
// [Simulate] plays other policies at given capacities, and a [Fleet] compares
// caches behind a router. A [Study] does all of this for several policies and
// capacities. Both need a [Sequence], the trace in memory, because
// Belady's policy looks ahead. [ParseCapacity] reads "10000", "5Mtok" or "64GiB".
//
// # What a hit is
//
// All blocks of a request are looked up first, against what was cached before it
// arrived. The hit is the number m of leading blocks found. Then all its blocks
// are inserted or refreshed from tail to head, as in engines, so that the head of a
// prompt outlives its tail.
package cache
