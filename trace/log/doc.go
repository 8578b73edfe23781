// Package log makes trace rows of requests without keeping their text: of those that a
// capture sees, and of those in the logs of gateways and SDKs. It also anonymizes traces.
//
//	key, err := log.OpenKey("capture.key") // made once, kept secret
//	cfg := log.Config{Key: key}
//	reader := log.NewReader(cfg)
//	call, err := reader.Read(log.Chat, body)
//	blocks := reader.Hash(call)
//	turn := &log.Turn{ID: "1", Arrived: time.Now()}
//	log.NewSessions(1000).Join(turn, "", blocks, "a new session")
//	row := log.NewRows(cfg, start).Row(&log.Exchange{Turn: turn, Call: call, Blocks: blocks})
//
// Block ids are HMAC-SHA256 of prefixes, see [Reader.Hash], and names of sessions and
// requests are those of their names. Without the key, nobody can find out whether a
// prompt has a known text. Two traces made with one key share ids.
//
// # Logs
//
// [Split] finds the entries of a log, and [Parse] reads one. These layouts are known by
// their keys:
//
//	exchange   {"request": body, "response": body, ...}
//	batch      lines of an OpenAI batch: {"custom_id", "body"} and {"custom_id", "response"}
//	litellm    StandardLoggingPayload, and rows of LiteLLM's spend logs
//	otel       OpenTelemetry spans and log records as OTLP JSON, and as console exporters print them
//
// An [Entry] refers to the texts of its requests. No error quotes any value of a log.
package log
