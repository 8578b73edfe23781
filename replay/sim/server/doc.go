// Package server is an OpenAI-compatible endpoint over a modelled LLM
// engine: something to replay against when no GPU is at hand, and something
// whose answers are known in advance when a client is to be checked.
//
// Start with [New] and [Server.Serve]; the zero [Config] answers as fast as it
// can, a realistic one says what a step of an engine costs, and how many
// engines there are:
//
//	ln, err := net.Listen("tcp", "127.0.0.1:8000")
//	if err != nil { ... }
//	s, err := server.New(simserver.Config{Deployment: engine.Deployment{
//		Engine: engine.Config{Costs: engine.Costs{
//			Step:         8 * time.Millisecond,  // 125 tokens a second to each user, at most
//			PrefillToken: 50 * time.Microsecond, // 20,000 prompt tokens a second, at most
//		}},
//		Engines: 4,
//		Routing: routing.Prefix,
//	}})
//	if err != nil { ... }
//	go s.Serve(ln)
//	defer s.Shutdown(context.Background())
//
// It serves POST /v1/chat/completions and /v1/completions (streamed and not),
// POST /tokenize, GET /v1/models, /v1/models/{id}, /health, /version and
// /metrics, the last under vLLM's names. A parameter that would change the
// answer in a way that is not modelled (n > 1, tools, logprobs, ...) is refused
// with status 400; harmless ones (temperature, top_p, seed, user, ...) are
// ignored. A client that leaves, also one that waits in the queue or for an
// answer that is not streamed, frees all that its request had at once.
//
// Tokens are counted so that a client can predict them: text is one token for
// each word between white space, a prompt of token ids is as long as the array,
// a chat is the words of its messages without a template, and every generated
// token is one word with a leading space.
//
// A request names its conversation, for the session router, in the header
// X-Session-ID. With X-Moontide-Stamps: 1 each event of its stream has a member
// "written_ns", the instant of CLOCK_MONOTONIC in nanoseconds at which it was
// handed to the kernel (on Linux; elsewhere of a clock of the server's own).
// With X-Moontide-Fault: KIND[:SHARE[:AMOUNT]] something goes wrong with its
// answer, see [ParseFault]; [Config] has faults for a share of all requests.
//
// One goroutine, the loop, steps the engines and writes the events of all
// streams straight to their sockets, so a token costs little more than the
// system call. A client that does not read holds up nobody; one that reads
// next to nothing for half a minute is cut off. The loop begins a round 200
// microseconds after the one before at the earliest, so that is how late an
// event may be when there are thousands a second, and Go's timers add up to a
// millisecond on systems other than Linux.
//
// The model behind it is in [moontide/replay/sim/engine]: state machines
// that take the time as an argument. The server steps them in real time.
package server
