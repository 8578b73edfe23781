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
