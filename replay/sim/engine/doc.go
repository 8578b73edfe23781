// Package engine models an LLM serving engine and deployments of several, as
// state machines that take time as an argument. The same engine serves over
// HTTP in real time and answers an hour of traffic in a second when it is
// stepped in virtual time.
//
// Start with [Deployment.New], or with [New] for one engine alone. Both are
// driven alike: hand over requests with Submit, ask Next when something is
// going to happen, and have Advance tell what did:
//
//	e, err := engine.New(engine.Config{Costs: engine.Costs{Step: 8 * time.Millisecond}})
//	...
//	err = e.Submit(0, &engine.Request{Prompt: prompt, Output: 100})
//	for {
//		at, ok := e.Next()
//		if !ok {
//			break // idle
//		}
//		events = e.Advance(at, events[:0])
//		...
//	}
//
// The engine batches continuously, as vLLM's V1 scheduler does. It works in
// steps. Each step computes one token of every decoding sequence and spends
// what is left of its token budget on prompts, first come first served, a long
// one in several chunks. What the batch holds determines how long the step
// takes ([Costs]). The KV cache is a number of blocks; full blocks of prompts
// stay in it for later prompts that begin alike, until their room is needed,
// the least recently used leaving first. When a decoding sequence finds no
// room, the sequence that was admitted last is preempted, and computed again
// later.
//
// Nothing in here reads a clock, draws an unseeded number or starts a
// goroutine: the same calls give the same events.
package engine
