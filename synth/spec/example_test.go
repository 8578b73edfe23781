package spec_test

import (
	"fmt"

	"moontide/synth/spec"
	"moontide/trace/format"
)

func Example() {
	d, err := spec.Parse([]byte(`
num_requests: 4
rate: 2
arrival: constant
isl: uniform:1000:1600
osl: 100
shared: {count: 3, tokens: 512, zipf: 1}
`), spec.Options{Name: "example.yaml"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for r, err := range d.Requests() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(format.AppendRow(nil, r)))
	}
	// Output:
	// {"timestamp": 0, "input_length": 1348, "output_length": 100, "hash_ids": [2, 3, 4], "context_len": 512, "unique_user_prompt_len": 836}
	// {"timestamp": 500, "input_length": 1374, "output_length": 100, "hash_ids": [0, 5, 6], "context_len": 512, "unique_user_prompt_len": 862}
	// {"timestamp": 1000, "input_length": 1471, "output_length": 100, "hash_ids": [0, 7, 8], "context_len": 512, "unique_user_prompt_len": 959}
	// {"timestamp": 1500, "input_length": 1422, "output_length": 100, "hash_ids": [1, 9, 10], "context_len": 512, "unique_user_prompt_len": 910}
}
