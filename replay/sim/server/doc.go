// Package server implements an OpenAI-compatible endpoint with a simulated LLM engine.
// Use it to replay traces without a GPU and to test clients against predictable responses.
//
//	s, err := server.New(server.Config{Deployment: engine.Deployment{
//		Engine: engine.Config{Costs: engine.Costs{
//			Step:         8 * engine.Millisecond,  // at most 125 tokens/s per user
//			PrefillToken: 50 * engine.Microsecond, // at most 20,000 prompt tokens/s
//		}},
//	}})
//	go s.Serve(listener)
//	defer s.Shutdown(context.Background())
//
// It serves, streamed and not, OpenAI's POST /v1/chat/completions, /v1/completions
// and /v1/responses, Anthropic's /v1/messages and SGLang's /generate, with the events,
// usage and errors of the real API, and GET /v1/models, /health, /version and /metrics
// (under vLLM's names). Queries in URLs and stop strings are ignored. Parameters that would
// change the response in a way that is not modelled (n > 1, tools, logprobs, ...) are
// rejected with status 400; others (temperature, top_p, user, ...) are ignored. All APIs but
// /generate, which has its own names for them, accept vLLM's ignore_eos and min_tokens; chat
// and completions return the ids of generated tokens if return_token_ids is true. When a
// client leaves, its request is aborted, queued or not.
//
// Tokens are predictable: a text has one token per word, separated by white space,
// a conversation has the tokens of its texts without a template, and every
// generated token is one word with a leading space. So a conversation has the same
// tokens, response and blocks in the cache in every API, and a response in a later prompt, as
// text or token ids, has the tokens that were generated. [Config.Encode] replaces words by
// the tokens of a model. The reasoning of earlier responses is no part of a prompt. In
// messages, as in Anthropic's API, the prompt has input_tokens + cache_read_input_tokens.
//
// Request headers: X-Session-ID identifies the conversation, for routing by session.
// X-Moontide-Stamps: 1 adds a member "written_ns" to each event, the time at which
// it was handed to the kernel, in nanoseconds of CLOCK_MONOTONIC (on other systems
// than Linux, of a clock of this process). X-Moontide-Fault:
// KIND[:SHARE[:TIME]] simulates a fault; see [ParseFault].
//
// One goroutine, the loop, steps the engines (package sim/engine) in real time and
// writes the events of all streams directly to their sockets, so a token costs
// little more than a system call. A client that does not read does not block
// others, and one that reads next to nothing for half a minute is disconnected.
// Rounds of the loop are at least 200 microseconds apart, so events are up to 200
// microseconds late under load; on systems other than Linux, timers add up to a
// millisecond.
package server
