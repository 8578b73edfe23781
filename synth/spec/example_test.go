package spec_test

import (
	"fmt"
	"log"

	"moontide/synth/spec"
)

func Example() {
	text := `
num_requests: 4
rate: 2
arrival: constant
isl: uniform:1000:1600
osl: 100
shared: {count: 3, tokens: 512, zipf: 1}
`
	s, err := spec.Parse([]byte(text), spec.Options{Name: "example.yaml"})
	if err != nil {
		log.Fatal(err)
	}
	for r, err := range s.Requests() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Timestamp.Value, "ms:", r.InputLength, "tokens in, blocks", r.HashIDs)
	}
	// Output:
	// 0 ms: 1348 tokens in, blocks [2 3 4]
	// 500 ms: 1374 tokens in, blocks [0 5 6]
	// 1000 ms: 1471 tokens in, blocks [0 7 8]
	// 1500 ms: 1422 tokens in, blocks [1 9 10]
}
