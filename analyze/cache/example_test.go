package cache_test

import (
	"fmt"

	"moontide/analyze/cache"
	"moontide/trace/block"
	"moontide/trace/routing"
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

func ExampleComparer() {
	var s cache.Sequence
	for turn := range 3 {
		for session := range uint32(2) {
			first := 10 * session
			s.Add([]uint32{first, first + 1, first + 2}[:turn+1], 512*(turn+1), fmt.Sprint("session ", session))
		}
		s.Add([]uint32{30}, 512, "")
	}
	c, err := cache.NewComparer(&s, 512)
	if err != nil {
		panic(err)
	}
	result, err := c.Compare(cache.Fleet{Workers: 2, Capacity: 8}, routing.RoundRobin, routing.Prefix)
	if err != nil {
		panic(err)
	}
	for _, r := range result.Routed {
		fmt.Printf("%s: %.2f\n", r.Routing, r.Hits.Rates().Block)
	}
	// Output:
	// round-robin: 0.20
	// prefix: 0.33
}
