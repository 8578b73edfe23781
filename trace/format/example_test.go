package format_test

import (
	"fmt"
	"strings"

	"moontide/trace/format"
)

func Example() {
	const azure = `TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
`
	r, err := format.NewReader(strings.NewReader(azure), "azure.csv", format.Options{})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	fmt.Println("format:", r.Format())
	for req, err := range r.Requests() {
		if err != nil {
			panic(err) // file:line: what is wrong, with the value
		}
		fmt.Println(string(format.AppendRow(nil, req)))
	}
	fmt.Println("note:", r.Notes()[0])
	// Output:
	// format: azure
	// {"timestamp": 0, "input_length": 374, "output_length": 44}
	// {"timestamp": 4314.579, "input_length": 396, "output_length": 109}
	// note: time 0 is 2023-11-16 18:15:46.6805900
}
