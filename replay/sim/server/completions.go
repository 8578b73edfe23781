package server

import "moontide/trace/jsonscan"

// completionAPI is OpenAI's completions. Reasoning is part of the text.
var completionAPI = api{
	name: "completions", path: "/v1/completions",
	idPrefix:    "cmpl-",
	promptParam: "prompt",
	maxTokens:   16, // as in OpenAI and vLLM

	tokenIDs:       func(w *wireRequest) (string, *raw) { return `"prompt"`, &w.Prompt },
	readPrompt:     readCompletion,
	readParameters: choiceParameters,

	encoder: &choices{
		object:       "text_completion",
		chunkObject:  "text_completion",
		wholeOpening: `{"index":0,"text":"`,
		opening:      `{"index":0,"text":"`,
		closing:      `","logprobs":null,"finish_reason":`,
	},
	errorBody: openAIError,
}

// readCompletion adds the prompt of a completion: a text, an array of token
// ids, or an array containing one of these.
func readCompletion(w *wireRequest, p tokens) *apiError {
	const param = "prompt"
	m := w.Prompt
	if absent(m) {
		return badRequest(param, "prompt is missing")
	}
	c := jsonscan.New(m)
	if m[0] == '[' && c.Open('[') && (c.Peek() == '"' || c.Peek() == '[') {
		inner := raw(c.Raw())
		if c.More(']') {
			return badRequest(param, "only one prompt per request is supported")
		}
		m = inner
	}
	if m[0] == '[' {
		return readTokenIDs(m, param, p)
	}
	return readText(m, param, p)
}
