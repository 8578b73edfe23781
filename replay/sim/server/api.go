package server

import (
	"math"
)

// api is an API that clients speak: how its requests are read and its responses written.
type api struct {
	name, path  string
	promptParam string // names the prompt in errors
	prompt      []promptPart
	tokenIDs    string // member that may be a long array of token ids; "" if there is none

	// Names of the members that mean the same in every API: see body.
	objects          []string // members that hold further ones
	limits           []string // of a response's length; a later one takes precedence
	least, ignoreEOS string
	limited          bool // a limit must be given
	maxTokens        int  // the default limit
	forms
}

// separatesReasoning reports whether responses tell reasoning from visible text.
func (a *api) separatesReasoning() bool { return a.reasoning.token != nil }

// forms are how an API writes its responses. Those of a stream are of events.
type forms struct {
	accepted        form // before the response is begun
	begun           form // before the first token
	text, reasoning partForms
	usageEvent      form // after the last token, if stream_options ask for it
	ended           form // after that
	failed          form // an error, which ends the stream

	whole                 form // a response that is not streamed
	usage                 form
	running, stop, length form           // why the response ended, or that it has not
	failure               form           // an error
	kinds                 map[int]string // of errors by status; the default is invalid_request_error
}

// partForms are the forms of a part of a response.
type partForms struct {
	opened, token, closed form // before the first token, of each, and after the last one
	whole                 form
}

// apis lists the APIs that are served.
var apis = []*api{&chatAPI, &completionAPI, &responsesAPI, &messagesAPI, &generateAPI}

// apiAt returns the API with a path, nil if there is none.
func apiAt(path string) *api {
	for _, a := range apis {
		if a.path == path {
			return a
		}
	}
	return nil
}

// chatAPI is OpenAI's chat completions. Reasoning is reasoning_content, as with
// DeepSeek, SGLang and vLLM.
var chatAPI = api{
	name: "chat", path: "/v1/chat/completions",
	promptParam: "messages", prompt: []promptPart{{"messages", objects}},
	objects: []string{"stream_options", "response_format"}, limits: []string{"max_tokens", "max_completion_tokens"},
	least: "min_tokens", ignoreEOS: "ignore_eos", maxTokens: math.MaxInt,
	forms: chat.forms(`"message":{"role":"assistant",$parts}`, forms{
		begun:     chat.event(`"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null`),
		text:      partForms{token: chat.event(`"delta":{"content":"$text"}` + choiceEnd), whole: formOf(`"content":"$text"`)},
		reasoning: partForms{token: chat.event(`"delta":{"reasoning_content":"$text"}` + choiceEnd), whole: formOf(`"reasoning_content":"$text"`)},
	}),
}

// completionAPI is OpenAI's completions. Reasoning is part of the text.
var completionAPI = api{
	name: "completions", path: "/v1/completions",
	promptParam: "prompt", prompt: []promptPart{{"prompt", aString + ", " + tokenArray + " or " + oneOf}}, tokenIDs: "prompt",
	objects: chatAPI.objects, limits: chatAPI.limits, least: "min_tokens", ignoreEOS: "ignore_eos", maxTokens: 16, // as in OpenAI and vLLM
	forms: completion.forms(`"text":"$text"`, forms{text: partForms{token: completion.event(`"text":"$text"` + choiceEnd)}}),
}

// choices are responses and events with one choice.
type choices struct{ prefix, object, chunk string }

var (
	chat       = choices{"chatcmpl-", "chat.completion", "chat.completion.chunk"}
	completion = choices{"cmpl-", "text_completion", "text_completion"}
)

// head is how a response or an event begins.
func (c choices) head(object string) string {
	return `{"id":"` + c.prefix + `$id","object":"` + object + `","created":$created,"model":$model,"choices":[`
}

// event is the form of an event with a choice.
func (c choices) event(choice string) form {
	return formOf(dataForm(c.head(c.chunk) + `{"index":0,` + choice + `}]$continuous`))
}

// choiceEnd is the end of a choice.
const choiceEnd = `,"logprobs":null,"finish_reason":$finish$returned`

// forms adds what chat and completions have in common.
func (c choices) forms(whole string, f forms) forms {
	f.usage = formOf(`"usage":{"prompt_tokens":$prompt,"total_tokens":$total,"completion_tokens":$output,"prompt_tokens_details":{"cached_tokens":$cached}$details}`)
	f.usageEvent = formOf(dataForm(c.head(c.chunk) + "],$usage"))
	f.ended = formOf(streamDone)
	f.whole = formOf(c.head(c.object) + `{"index":0,` + whole + choiceEnd + "}],$usage}")
	f.running, f.stop, f.length = formOf("null"), formOf(`"stop","stop_reason":null`), formOf(`"length","stop_reason":null`)
	f.failure, f.failed, f.kinds = formOf(openAIError), formOf("data: "+openAIError+"\n\n"+streamDone), openAIKinds
	return f
}

// streamDone ends the streams of most APIs.
const streamDone = "data: [DONE]\n\n"

// openAIError is the error of OpenAI's APIs.
const openAIError = `{"error":{"message":$message,"type":"$kind","param":$param,"code":$code}}`

// openAIKinds are the types of its errors by status.
var openAIKinds = map[int]string{429: "rate_limit_error", 500: "server_error", 503: "server_error"}

// responsesAPI is OpenAI's responses. A response that reaches max_output_tokens is
// incomplete. Reasoning is an item of its own, in clear text as with open models.
var responsesAPI = api{
	name: "responses", path: "/v1/responses",
	promptParam: "input", prompt: []promptPart{{"instructions", aString}, {"input", aString + " or " + objects}},
	objects: []string{"text", "text.format"}, limits: []string{"max_output_tokens"}, least: "min_tokens", ignoreEOS: "ignore_eos", maxTokens: math.MaxInt,
	forms: forms{
		accepted: formOf(responseEvent("response.created", `,"response":`+responseBegun) + responseEvent("response.in_progress", `,"response":`+responseBegun)),
		text: itemForms(`"id":"msg_$id","type":"message","role":"assistant"`, "msg_$id", "response.output_text",
			`{"type":"output_text","annotations":[],"logprobs":[],"text":"`, `,"logprobs":[]`),
		reasoning: itemForms(`"id":"rs_$id","type":"reasoning","summary":[]`, "rs_$id", "response.reasoning_text",
			`{"type":"reasoning_text","text":"`, ""),
		ended:   formOf(responseEvent("response.$finish", `,"response":`+responseEnded)),
		whole:   formOf(responseEnded),
		running: formOf("completed"), // of an item before the last one
		stop:    formOf("completed"), length: formOf("incomplete"),
		usage: formOf(`{"input_tokens":$prompt,"input_tokens_details":{"cached_tokens":$cached},"output_tokens":$output,` +
			`"output_tokens_details":{"reasoning_tokens":$reasoned},"total_tokens":$total}`),
		failure: formOf(openAIError),
		failed:  formOf(responseEvent("error", `,"code":"server_error","message":$message,"param":null`)),
		kinds:   openAIKinds,
	},
}

var (
	responseBegun = responseForm("in_progress", "null", "", "null")
	responseEnded = responseForm("$finish", "$incomplete", "$parts", "$usage")
)

// responseForm is a response with a status and what depends on it.
func responseForm(status, details, output, usage string) string {
	return `{"id":"resp_$id","object":"response","created_at":$created,"status":"` + status + `","background":false,"error":null,` +
		`"incomplete_details":` + details + `,"instructions":null,"max_output_tokens":$limit,"model":$model,"output":[` + output + `],` +
		`"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":null,"summary":null},"store":false,` +
		`"temperature":1.0,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled",` +
		`"usage":` + usage + `,"user":null,"metadata":{}}`
}

// responseEvent is the form of an event with its number.
func responseEvent(name, members string) string {
	return eventForm(name, members+`,"sequence_number":$sequence`)
}

// itemForms returns the forms of an output item with one content part. content ends where
// the text begins; rest has the other members of text events.
func itemForms(item, id, event, content, rest string) partForms {
	about := func(name, members string) string {
		return responseEvent(name, `,"item_id":"`+id+`","output_index":$index,"content_index":0`+members)
	}
	whole := "{" + item + `,"status":"$finish","content":[` + content + `$text"}]}`
	return partForms{
		opened: formOf(responseEvent("response.output_item.added", `,"output_index":$index,"item":{`+item+`,"status":"in_progress","content":[]}`) +
			about("response.content_part.added", `,"part":`+content+`"}`)),
		token: formOf(about(event+".delta", `,"delta":"$text"`+rest)),
		closed: formOf(about(event+".done", `,"text":"$text"`+rest) +
			about("response.content_part.done", `,"part":`+content+`$text"}`) +
			responseEvent("response.output_item.done", `,"output_index":$index,"item":`+whole)),
		whole: formOf(whole),
	}
}

// messagesAPI is Anthropic's messages. Its input_tokens do not include the cached
// tokens: the prompt has input_tokens + cache_read_input_tokens. Reasoning is a
// thinking block.
var messagesAPI = api{
	name: "messages", path: "/v1/messages",
	promptParam: "messages", prompt: []promptPart{{"system", aString + " or " + objects}, {"messages", objects}},
	limits: []string{"max_tokens"}, limited: true, least: "min_tokens", ignoreEOS: "ignore_eos", maxTokens: math.MaxInt,
	forms: forms{
		begun: formOf(eventForm("message_start", `,"message":`+messageForm("", `"stop_reason":null,"stop_sequence":null`, "1")) + eventForm("ping", "")),
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
		whole: formOf(messageForm("$parts", messageStop, "$output")),
		stop:  formOf("end_turn"), length: formOf("max_tokens"),
		failure: formOf(anthropicError), failed: formOf("event: error\ndata: " + anthropicError + "\n\n"),
		kinds: map[int]string{404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 503: "api_error"},
	},
}

const (
	anthropicError = `{"type":"error","error":{"type":"$kind","message":$message}}`
	messageStop    = `"stop_reason":"$finish","stop_sequence":null`
	messageUsage   = `"usage":{"input_tokens":$uncached,"cache_creation_input_tokens":0,"cache_read_input_tokens":$cached,"output_tokens":`
)

// messageForm is a message, or the start of one.
func messageForm(content, stop, output string) string {
	return `{"id":"msg_$id","type":"message","role":"assistant","model":$model,"content":[` + content + "]," + stop + "," + messageUsage + output + "}}"
}

// generateAPI is SGLang's native API. Each event has the text so far, and the ids
// of the tokens that are new. Reasoning is part of the text.
var generateAPI = api{
	name: "generate", path: "/generate",
	promptParam: "text", prompt: []promptPart{{"input_ids", tokenArray}, {"text", aString}}, tokenIDs: "input_ids",
	objects: []string{"sampling_params"}, limits: []string{"sampling_params.max_new_tokens"},
	least: "sampling_params.min_new_tokens", ignoreEOS: "sampling_params.ignore_eos", maxTokens: 128, // as in SGLang
	forms: forms{
		text: partForms{token: formOf(dataForm(generated))}, ended: formOf(streamDone), whole: formOf(generated + "}"),
		running: formOf("null"),
		stop:    formOf(`{"type":"stop","matched":2}`), // the id of the token that ends a response
		length:  formOf(`{"type":"length","length":$output}`),
		failure: formOf(generateError), failed: formOf("data: " + generateError + "\n\n" + streamDone),
	},
}

// generated is the response up to the current token.
const generated = `{"text":"$sofar","output_ids":[$ids],"meta_info":{"id":"$id","finish_reason":$finish,` +
	`"prompt_tokens":$prompt,"completion_tokens":$output,"cached_tokens":$cached}`

const generateError = `{"error":{"message":$message}}`
