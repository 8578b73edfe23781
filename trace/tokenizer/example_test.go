package tokenizer_test

import (
	"fmt"
	"log"

	"moontide/trace/tokenizer"
)

func Example() {
	t, err := tokenizer.Open("tokenizer.json") // of a model with byte-level BPE
	if err != nil {
		log.Fatal(err)
	}
	ids, err := t.Append(nil, "The tide is high.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(ids), "tokens")
}
