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
// # Laws
//
// Steps: the engine batches continuously (Orca, OSDI 2022), like vLLM's V1 scheduler.
// Each step computes one token of every decoding sequence and spends the rest of its
// token budget on prompts, first come first served, long ones in chunks (Sarathi-Serve,
// OSDI 2024). The batch determines the time of the step: a sum of parts ([Costs]), as in
// Vidur (MLSys 2024), with a table for the number of sequences. [Costs].Attention adds
// the quadratic part of a prompt.
//
// KV cache: it consists of blocks (PagedAttention, SOSP 2023). Full blocks of prompts
// stay cached for later prompts with the same prefix until their space is needed, least
// recently used first. When a decoding sequence finds no free block, the sequence
// admitted last is preempted and recomputed later.
//
// Ranks: an engine may have data-parallel ranks ([Config].Ranks), as vLLM
// (--data-parallel-size) and SGLang (--enable-dp-attention) have for mixtures of experts
// that are spread over the ranks. Each rank has a scheduler and a KV cache of its own,
// and the router sees each. A step begins when all have ended the one before, all ranks
// with work take part, and it lasts as long as the slowest part, because the experts of
// a layer need the tokens of all ranks. So a rank that computes a prompt slows the
// tokens of all others.
//
// Disaggregation (DistServe, OSDI 2024): a prefill engine computes the prompt and the
// first token and keeps the blocks until a decode engine has them. Each rank of a
// prefill engine sends over a link of its own ([Transfer]); a law of sharing says how
// transfers at the same time slow each other.
//
// # Limits
//
// The cost of a step depends on its sums only, not on which experts or adapters its
// tokens need; ranks wait for each other once per step, not at each layer. There is no
// speculative decoding, pipeline parallelism, KV offloading or load balancing after
// admission, and the router knows the state of all ranks without delay. Costs have no
// noise. What fitted costs say outside the loads that they were fitted to is
// extrapolation.
//
// Nothing here reads a clock, draws unseeded random numbers or starts a goroutine: the
// same calls give the same events.
package engine
