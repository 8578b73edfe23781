package sessions_test

import (
	"fmt"
	"log"

	"moontide/synth/sessions"
	"moontide/trace"
	"moontide/trace/format"
)

func Example() {
	source, err := format.Open("../../traces/chat.jsonl", format.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer source.Close()
	m, err := sessions.Fit(source.Requests(), sessions.Options{})
	if err != nil {
		log.Fatal(err)
	}
	longer, err := trace.Collect(m.Requests(1, 10_000))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.SourceRequests(), "requests learned,", len(longer), "drawn")
	// Output: 100 requests learned, 10000 drawn
}
