package server

import "math"

// messagesAPI is Anthropic's messages. Its input_tokens do not include the cached
// tokens: the prompt has input_tokens + cache_read_input_tokens. Reasoning is a
// thinking block.
var messagesAPI = api{
	name: "messages", path: "/v1/messages",
	promptParam: "messages", prompt: []promptPart{{"system", aString + " or " + objects}, {"messages", objects}},
	limits: []string{"max_tokens"}, limited: true, least: "min_tokens", ignoreEOS: "ignore_eos", maxTokens: math.MaxInt,
	separatesReasoning: true,

	forms: forms{
		begun: formOf(eventForm("message_start", `,"message":`+message("", `"stop_reason":null,"stop_sequence":null`, "1")) + eventForm("ping", "")),
		text: partForms{
			opened: formOf(eventForm("content_block_start", `,"index":$index,"content_block":{"type":"text","text":""}`)),
			token:  formOf(eventForm("content_block_delta", `,"index":$index,"delta":{"type":"text_delta","text":"$text"}`)),
			closed: formOf(eventForm("content_block_stop", `,"index":$index`)),
			whole:  formOf(`{"type":"text","text":"$text"}`),
		},
		reasoning: partForms{
			opened: formOf(eventForm("content_block_start", `,"index":$index,"content_block":{"type":"thinking","thinking":"","signature":""}`)),
			token:  formOf(eventForm("content_block_delta", `,"index":$index,"delta":{"type":"thinking_delta","thinking":"$text"}`)),
			closed: formOf(eventForm("content_block_delta", `,"index":$index,"delta":{"type":"signature_delta","signature":"$id"}`) +
				eventForm("content_block_stop", `,"index":$index`)),
			whole: formOf(`{"type":"thinking","thinking":"$text","signature":"$id"}`),
		},
		ended: formOf(eventForm("message_delta", `,"delta":{`+messageStop+"},"+messageUsage+"$output}") + eventForm("message_stop", "")),
		whole: formOf(message("$parts", messageStop, "$output")),
		stop:  formOf("end_turn"), length: formOf("max_tokens"),
		failure: formOf(anthropicError),
		failed:  formOf("event: error\ndata: " + anthropicError + "\n\n"),
		kinds: map[int]string{
			404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 503: "api_error",
		},
	},
}

const (
	anthropicError = `{"type":"error","error":{"type":"$kind","message":$message}}`
	messageStop    = `"stop_reason":"$finish","stop_sequence":null`
	messageUsage   = `"usage":{"input_tokens":$uncached,"cache_creation_input_tokens":0,"cache_read_input_tokens":$cached,"output_tokens":`
)

// message is a message, or the start of one.
func message(content, stop, output string) string {
	return `{"id":"msg_$id","type":"message","role":"assistant","model":$model,"content":[` + content + "]," + stop + "," + messageUsage + output + "}}"
}
