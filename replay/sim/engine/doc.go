// Package engine models LLM serving engines and deployments of several engines
// as state machines that take the time as an argument. The same engine serves HTTP in
// real time (replay/sim/server), or an hour of traffic in a second of virtual time
// (replay/sim/virtual).
//
// Start with [Deployment.New]. Add requests with Submit, get the time of the next
// event from Next, and the events from Advance:
//
//	config := engine.Config{Costs: engine.Costs{Step: 8 * engine.Millisecond}}
//	e, err := engine.Deployment{Engine: config}.New()
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
// The engine batches continuously, like vLLM's V1 scheduler. Each step computes one
// token of every decoding sequence and spends the rest of its token budget on prompts,
// first come first served, long ones in chunks. The batch determines the time of the
// step ([Costs]). The KV cache consists of blocks; full blocks of prompts stay cached
// for later prompts with the same prefix until their space is needed, least recently
// used first. When a decoding sequence finds no free block, the sequence admitted last
// is preempted and recomputed later.
//
// Nothing here reads a clock, draws unseeded random numbers or starts a goroutine: the
// same calls give the same events.
package engine
