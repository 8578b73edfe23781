package prefix_test

import (
	"fmt"

	"moontide/synth/prefix"
)

func Example() {
	t := prefix.New()
	t.Add([]uint64{7, 8, 9, 30})
	n := t.Add([]uint64{7, 8, 9})
	t.Add([]uint64{7, 40})
	fmt.Println(t.Visits(n), "requests share", t.Depth(n), "blocks")
	for _, run := range t.Core().Nodes[1:] {
		fmt.Println(run.Blocks, "blocks shared by", run.Visits)
	}
	// Output:
	// 2 requests share 3 blocks
	// 1 blocks shared by 3
	// 2 blocks shared by 2
}
