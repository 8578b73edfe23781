package simserver_test

import (
	"fmt"
	"time"

	"moontide/replay/simserver"
)

// Stepped in virtual time, the engine tells at once what becomes of requests.
func ExampleEngine() {
	e := simserver.NewEngine(simserver.Config{
		PrefillPerToken: time.Millisecond,
		DecodeStep:      20 * time.Millisecond,
		BlockSize:       4,
	})
	for i, text := range []string{
		"you are a helpful assistant what is a tide",
		"you are a helpful assistant what is the moon",
	} {
		p := e.NewPrompt()
		p.AddText(text)
		t := e.Submit(0, p, simserver.Sampling{MaxTokens: 10, IgnoreEOS: true})
		fmt.Printf("request %d: %d of %d tokens cached, first token at %v, last at %v\n",
			i, t.Cached, t.Prompt, t.First, t.Due(t.Tokens-1))
	}
	// Output:
	// request 0: 0 of 9 tokens cached, first token at 9ms, last at 189ms
	// request 1: 4 of 9 tokens cached, first token at 14ms, last at 194ms
}
