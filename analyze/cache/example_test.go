package cache_test

import (
	"fmt"

	"moontide/analyze/cache"
	"moontide/trace/block"
)

func ExampleCurveBuilder() {
	prompts := [][]uint64{{7, 8, 9}, {7, 8, 10}, {7, 8, 9}}
	var t block.Table
	var b cache.CurveBuilder
	var numbers []uint32
	for _, ids := range prompts {
		numbers = t.AppendNumbers(numbers[:0], ids)
		b.Add(numbers, 512*len(ids))
	}
	curve := b.Curve(512)
	for _, capacity := range []int{2, 3, 4} {
		fmt.Printf("%d blocks: %.2f\n", capacity, curve.At(capacity).Rates().Block)
	}
	fmt.Println("all that an infinite cache hits:", curve.SmallestByBlock(1), "blocks")
	// Output:
	// 2 blocks: 0.44
	// 3 blocks: 0.44
	// 4 blocks: 0.56
	// all that an infinite cache hits: 4 blocks
}

func ExampleSimulate() {
	var s cache.Sequence
	for _, numbers := range [][]uint32{{0, 1}, {2, 3}, {0, 1}, {4, 5}, {0, 1}} {
		s.Add(numbers, 1024, "")
	}
	for _, policy := range cache.Policies() {
		hits, err := cache.Simulate(&s, policy, 512, 2, 4)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %.1f, %.1f\n", policy, hits[0].Rates().Block, hits[1].Rates().Block)
	}
	// Output:
	// lru: 0.0, 0.4
	// lfu: 0.0, 0.4
	// fifo: 0.0, 0.2
	// belady: 0.4, 0.4
}
