// Package requestlog reads the entries of logs that gateways and SDKs write about
// requests to language models and their answers.
//
//	err := requestlog.Split(object, func(layout requestlog.Layout, at int, raw []byte) error {
//		entry, err := requestlog.Parse(layout, raw)
//		...
//	})
//
// It knows these layouts, by their keys:
//
//	exchange   {"request": body, "response": body, ...}
//	batch      lines of an OpenAI batch: {"custom_id", "body"} and {"custom_id", "response"}
//	litellm    StandardLoggingPayload, and rows of LiteLLM's spend logs
//	langfuse   observations: exports, pages of the API, a downloaded trace
//	otel       OpenTelemetry spans and log records as OTLP JSON, and as console exporters print them
//
// An [Entry] refers to the texts of its requests. No error quotes any value of a log.
package requestlog
