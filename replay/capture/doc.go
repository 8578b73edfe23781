// Package capture records live LLM traffic as a trace, without the text of prompts and
// answers.
//
// A Proxy is an http.Handler in front of the server, and Files is where its rows go:
//
//	key, err := log.OpenKey("capture.key") // made once, kept secret
//	files, err := capture.CreateFiles(capture.FilesConfig{Path: "trace.jsonl.zst"})
//	proxy, err := capture.New(capture.Config{Upstream: url, Config: log.Config{Key: key}}, files)
//	http.ListenAndServe("127.0.0.1:9000", proxy)
//	...
//	proxy.Close() // after the last request
//	files.Close()
//
// Requests of all APIs of package openai are recorded, others only forwarded. Bodies are
// forwarded unchanged, and events as they arrive.
//
// # Contents of a trace
//
// The arrival of each request at the proxy, in milliseconds since the capture began; ISL
// and OSL as the server counts them; block ids, which are keyed hashes of prefixes; the
// session, the turn, and the pause before it; model, priority and max_tokens; and the
// outcome, with TTFT and E2EL as seen at the proxy.
//
// Counts that the server does not report come from the tokens of the texts or are
// estimated, and the row's "estimated" names them. Blocks are of tokens if prompts are
// token ids or if there is an Encoder, otherwise of pieces of text.
//
// # Privacy
//
// Texts of prompts and answers, header values and names of users and sessions are never
// written. After a request is recorded, only buffers of open connections may hold them.
// A trace shows lengths, times and equality: that two prompts begin alike, that two
// requests are of one session. Without the key, nobody can find out whether a prompt has
// a known text.
//
// # Limits
//
// Requests are forwarded whether or not they can be recorded. Config.Memory bounds the
// memory; what does not fit, cannot be read or cannot be written is missing in the trace,
// and counted by reason in Counts.
package capture
