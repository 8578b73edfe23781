// Package server implements an OpenAI-compatible endpoint with a modelled LLM
// engine. Use it to replay traces without a GPU and to test clients against
// predictable answers.
//
//	s, err := server.New(server.Config{Deployment: engine.Deployment{
//		Engine: engine.Config{Costs: engine.Costs{
//			Step:         8 * time.Millisecond,  // at most 125 tokens/s per user
//			PrefillToken: 50 * time.Microsecond, // at most 20,000 prompt tokens/s
//		}},
//	}})
//	go s.Serve(listener)
//	defer s.Shutdown(context.Background())
//
// It serves POST /v1/chat/completions and /v1/completions (streamed and not),
// POST /tokenize, GET /v1/models, /v1/models/{id}, /health, /version and /metrics
// (under vLLM's names). Parameters that would change the answer in a way that is
// not modelled (n > 1, tools, logprobs, ...) are rejected with status 400; others
// (temperature, top_p, user, ...) are ignored. When a client leaves, its request
// is aborted, queued or not.
//
// Tokens are predictable: a text has one token per word, separated by white space,
// a chat has the tokens of its messages without a template, and every generated
// token is one word with a leading space.
//
// Request headers: X-Session-ID identifies the conversation, for routing by session.
// X-Moontide-Stamps: 1 adds a member "written_ns" to each event, the time at which
// it was handed to the kernel, in nanoseconds of CLOCK_MONOTONIC (on other systems
// than Linux, of a clock of this process). X-Moontide-Fault:
// KIND[:SHARE[:AMOUNT]] simulates a fault; see [ParseFault].
//
// One goroutine, the loop, steps the engines (package sim/engine) in real time and
// writes the events of all streams directly to their sockets, so a token costs
// little more than a system call. A client that does not read does not block
// others, and one that reads next to nothing for half a minute is disconnected.
// Rounds of the loop are at least 200 microseconds apart, so events are up to 200
// microseconds late under load; on systems other than Linux, timers add up to a
// millisecond.
package server
