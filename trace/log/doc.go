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
// [Split] finds the entries of a log, and [Parse] reads one. These are known by their keys:
//
//	row     {"request": body, "response": body, ...}; StandardLoggingPayload of LiteLLM, and
//	        rows of its spend logs
//	batch   lines of an OpenAI batch: {"custom_id", "body"} and {"custom_id", "response"}
//	span    OpenTelemetry spans and log records as OTLP JSON, and as console exporters print
//	        them; their attributes and messages are added to their members
//
// All of them are then read alike. Each fact has one reader, and one line in names.go with
// the names that logs have for it: what is asked in readRequest, whether it generates text
// in otherCall, times and names in read, tokens in Usage.read, texts and failures of responses
// in readResponse. A body is read by [Reader], as that of a capture.
//
// An [Entry] refers to the texts of its requests. No error quotes any value of a log.
package log
