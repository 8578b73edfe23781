// Package simserver is an OpenAI-compatible endpoint over a modelled LLM
// engine: something to replay against when no GPU is at hand, and something
// whose answers are known in advance when a client is to be checked.
//
// Start with [New] and [Server.Serve]; the zero [Config] answers as fast as it
// can, a realistic one says what a token costs:
//
//	ln, err := net.Listen("tcp", "127.0.0.1:8000")
//	if err != nil { ... }
//	s := simserver.New(simserver.Config{
//		PrefillPerToken: 50 * time.Microsecond, // 20,000 prompt tokens a second
//		DecodeStep:      20 * time.Millisecond, // 50 tokens a second to each user
//	})
//	go s.Serve(ln)
//	defer s.Shutdown(context.Background())
//
// It serves POST /v1/chat/completions and /v1/completions (streamed and not),
// GET /v1/models, /health and /metrics, the last under vLLM's names. A
// parameter that would change the answer in a way that is not modelled (n > 1,
// tools, logprobs, ...) is refused with status 400; harmless ones (temperature,
// top_p, seed, stop, user, ...) are ignored.
//
// Tokens are counted so that a client can predict them: text is one token for
// each word between white space, a prompt of token ids is as long as the array,
// a chat is the words of its messages without a template, and every generated
// token is one word with a leading space.
//
// The model behind it is [Engine], a state machine that takes the time as an
// argument. The server steps it in real time; it can be stepped in virtual
// time as well, which answers in microseconds what a run would take hours to
// show.
package simserver
