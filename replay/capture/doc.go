// Package capture records live LLM traffic as a trace, without the text of prompts and
// answers.
//
// A Proxy is an http.Handler in front of the server, and Files is where its rows go:
//
//	key, err := record.OpenKey("capture.key") // made once, kept secret
//	files, err := capture.CreateFiles(capture.FilesConfig{Path: "trace.jsonl.zst"})
//	proxy, err := capture.New(capture.Config{Upstream: url, Config: record.Config{Key: key}}, files)
//	http.ListenAndServe("127.0.0.1:9000", proxy)
//	...
//	proxy.Close() // after the last request
//	files.Close()
//
// Requests of all APIs of package openai are recorded, others are only passed on. Bodies
// are passed on unchanged, and events as they arrive.
//
// # What a trace has
//
// The arrival of each request at the proxy, in milliseconds since the capture began; ISL
// and OSL as the server counts them; block ids, which are keyed hashes of prefixes; the
// session, the turn, and the pause before it; model, priority and max_tokens; and the
// outcome, with TTFT and E2EL as seen at the proxy.
//
// What the server does not tell is taken from the tokens of the texts or estimated, and
// is named in the row's "estimated". Block ids are those of tokens if prompts are token
// ids or if there is an Encoder. Otherwise they are those of pieces of text.
//
// # What it does not have
//
// Texts of prompts and answers, header values and names of users and sessions are never
// written, and nothing refers to them after their request is recorded but the buffers
// of connections that stay open. What shows is lengths, times and equality: that two
// prompts begin alike, that two requests are of one session. Without the key, nobody can
// find out whether a prompt has a known text.
//
// # It does no harm
//
// Requests are passed on whether or not they can be recorded. Memory is bounded by
// Config.Memory; what does not fit, cannot be read or cannot be written is missing in the
// trace, and counted by reason in Counts.
package capture
