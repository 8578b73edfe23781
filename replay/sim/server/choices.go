package server

import (
	"math"
)

// Members of chat and completions: those that limit an answer, and those that hold others.
var (
	limitNames    = []string{"max_tokens", "max_completion_tokens"}
	choiceObjects = []string{"stream_options", "response_format"}
)

// chatAPI is OpenAI's chat completions. Reasoning is reasoning_content, as with
// DeepSeek, SGLang and vLLM.
var chatAPI = api{
	name: "chat", path: "/v1/chat/completions",
	promptParam: "messages", prompt: []promptPart{{"messages", objects}},
	limits: limitNames, least: "min_tokens", ignoreEOS: "ignore_eos", maxTokens: math.MaxInt,
	objects: choiceObjects, separatesReasoning: true,

	forms: choiceForms("chatcmpl-", "chat.completion", "chat.completion.chunk", `"message":{"role":"assistant",$parts}`, forms{
		begun: formOf(choiceEvent("chatcmpl-", "chat.completion.chunk", `"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null`)),
		text: partForms{
			token: choiceToken("chatcmpl-", "chat.completion.chunk", `"delta":{"content":"$text"}`),
			whole: formOf(`"content":"$text"`),
		},
		reasoning: partForms{
			token: choiceToken("chatcmpl-", "chat.completion.chunk", `"delta":{"reasoning_content":"$text"}`),
			whole: formOf(`"reasoning_content":"$text"`),
		},
	}),
}

// completionAPI is OpenAI's completions. Reasoning is part of the text.
var completionAPI = api{
	name: "completions", path: "/v1/completions",
	promptParam: "prompt", prompt: []promptPart{{"prompt", aString + ", " + tokenArray + " or " + oneOf}}, tokenIDs: "prompt",
	limits: limitNames, least: "min_tokens", ignoreEOS: "ignore_eos", maxTokens: 16, // as in OpenAI and vLLM
	objects: choiceObjects,

	forms: choiceForms("cmpl-", "text_completion", "text_completion", `"text":"$text"`, forms{
		text: partForms{token: choiceToken("cmpl-", "text_completion", `"text":"$text"`)},
	}),
}

// choiceHead is how answers and events with choices begin.
func choiceHead(prefix, object string) string {
	return `{"id":"` + prefix + `$id","object":"` + object + `","created":$created,"model":$model,"choices":[`
}

// choiceEvent is the form of an event with a choice.
func choiceEvent(prefix, object, choice string) string {
	return dataForm(choiceHead(prefix, object) + `{"index":0,` + choice + `}]$continuous`)
}

// choiceEnd is the end of a choice.
const choiceEnd = `,"logprobs":null,"finish_reason":$finish$returned`

// choiceToken is the form of the event of a token.
func choiceToken(prefix, object, text string) form {
	return formOf(choiceEvent(prefix, object, text+choiceEnd))
}

// choiceForms adds to the forms of chat or completions what they have in common.
func choiceForms(prefix, object, chunk, whole string, f forms) forms {
	f.usage = formOf(`"usage":{"prompt_tokens":$prompt,"total_tokens":$total,"completion_tokens":$output,"prompt_tokens_details":{"cached_tokens":$cached}$details}`)
	f.usageEvent = formOf(dataForm(choiceHead(prefix, chunk) + "],$usage"))
	f.ended = formOf(streamDone)
	f.whole = formOf(choiceHead(prefix, object) + `{"index":0,` + whole + choiceEnd + "}],$usage}")
	f.running, f.stop, f.length = formOf("null"), formOf(`"stop","stop_reason":null`), formOf(`"length","stop_reason":null`)
	f.failure = formOf(openAIError)
	f.failed = formOf("data: " + openAIError + "\n\n" + streamDone)
	f.kinds = openAIKinds
	return f
}

// streamDone ends the streams of most APIs.
const streamDone = "data: [DONE]\n\n"

// openAIError is the error of OpenAI's APIs.
const openAIError = `{"error":{"message":$message,"type":"$kind","param":$param,"code":$code}}`

// openAIKinds are the types of its errors by status.
var openAIKinds = map[int]string{429: "rate_limit_error", 500: "server_error", 503: "server_error"}
