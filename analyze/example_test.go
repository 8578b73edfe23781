package analyze_test

import (
	"fmt"
	"strings"

	"moontide/analyze"
	"moontide/trace/format"
)

func ExampleTrace() {
	rows := `{"timestamp": 0, "input_length": 1200, "output_length": 80, "hash_ids": [1, 2, 3]}
{"timestamp": 400, "input_length": 1500, "output_length": 120, "hash_ids": [1, 2, 4]}
`
	r, err := format.NewReader(strings.NewReader(rows), "example.jsonl", format.Options{})
	if err != nil {
		panic(err)
	}
	a, err := analyze.Trace(r.Borrowed(), analyze.Options{BlockSize: 512})
	if err != nil {
		panic(err)
	}
	fmt.Println(a.Requests, "requests, mean ISL", a.ISL.Mean, "p50 OSL", a.OSL.Quantile(0.5))
	fmt.Printf("block hit rate of an infinite cache: %.3f\n", a.Prefix.Infinite.Block)
	// Output:
	// 2 requests, mean ISL 1350 p50 OSL 100
	// block hit rate of an infinite cache: 0.333
}
