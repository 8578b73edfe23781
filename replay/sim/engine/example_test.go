package engine_test

import (
	"fmt"

	"moontide/replay/sim/engine"
)

// Two prompts with a common prefix: the second hits a block of the first.
func Example() {
	e, err := engine.Deployment{Engine: engine.Config{
		Costs:     engine.Costs{PrefillToken: engine.Millisecond, Sequence: 20 * engine.Millisecond},
		BlockSize: 4,
	}}.New()
	if err != nil {
		panic(err)
	}
	for i, text := range []string{
		"you are a helpful assistant what is a tide",
		"you are a helpful assistant what is the moon",
	} {
		p := engine.NewPrompt(4)
		p.AddText(text)
		if err := e.Submit(0, &engine.Request{Prompt: p, Output: 2, Owner: i}); err != nil {
			panic(err)
		}
	}
	for at, ok := e.Next(); ok; at, ok = e.Next() {
		for _, event := range e.Advance(at, nil) {
			r := event.Request
			fmt.Printf("%v: request %v %v, %d of %d tokens cached\n", event.At, r.Owner, event.Kind, r.Cached(), r.Prompt.Len())
		}
	}
	// Output:
	// 14ms: request 0 first, 0 of 9 tokens cached
	// 14ms: request 1 first, 4 of 9 tokens cached
	// 54ms: request 0 token, 0 of 9 tokens cached
	// 54ms: request 0 finished, 0 of 9 tokens cached
	// 54ms: request 1 token, 4 of 9 tokens cached
	// 54ms: request 1 finished, 4 of 9 tokens cached
}
