package sse_test

import (
	"fmt"

	"moontide/replay/openai/sse"
)

func ExampleParser() {
	var p sse.Parser
	for _, read := range []string{"data: {\"text\":\" ti", "de\"}\n\n: keep-alive\n\ndata: [DO", "NE]\n\n"} {
		data, rest, ok, err := p.Next([]byte(read))
		for ; ok; data, rest, ok, err = p.Next(rest) {
			fmt.Printf("%s\n", data)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// {"text":" tide"}
	// [DONE]
}
