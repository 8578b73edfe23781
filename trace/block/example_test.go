package block_test

import (
	"fmt"

	"moontide/trace/block"
)

func Example() {
	var t block.Table
	for _, ids := range [][]uint64{{46, 47, 48}, {46, 47, 1 << 60}} {
		fmt.Println(t.AppendNumbers(nil, ids))
	}
	fmt.Println(t.Len(), "distinct blocks")
	// Output:
	// [0 1 2]
	// [0 1 3]
	// 4 distinct blocks
}
