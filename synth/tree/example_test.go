package tree_test

import (
	"fmt"
	"log"

	"moontide/synth/tree"
	"moontide/trace"
)

func Example() {
	source := []trace.Request{
		{Timestamp: trace.Some(0.0), InputLength: 1000, OutputLength: 10, HashIDs: []uint64{0, 1}},
		{Timestamp: trace.Some(100.0), InputLength: 1400, OutputLength: 20, HashIDs: []uint64{0, 2, 3}},
		{Timestamp: trace.Some(200.0), InputLength: 600, OutputLength: 30, HashIDs: []uint64{0, 4}},
	}
	m, err := tree.Fit(trace.FromSlice(source), tree.Options{BlockSize: 512})
	if err != nil {
		log.Fatal(err)
	}
	drawing, err := m.Draw(1, 3, tree.Shape{})
	if err != nil {
		log.Fatal(err)
	}
	for r, err := range drawing.Requests() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Timestamp.Value, "ms:", r.InputLength, "tokens in, blocks", r.HashIDs)
	}
	// Output:
	// 0 ms: 1000 tokens in, blocks [0 1]
	// 100 ms: 1400 tokens in, blocks [0 2 3]
	// 200 ms: 1000 tokens in, blocks [0 4]
}
