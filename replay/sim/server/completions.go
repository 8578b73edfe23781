package server

import "moontide/trace/jsonscan"

// completionAPI is OpenAI's completions. Reasoning is part of the text.
var completionAPI = api{
	name: "completions", path: "/v1/completions",
	idPrefix:    "cmpl-",
	promptParam: "prompt",
	maxTokens:   16, // as in OpenAI and vLLM

	tokenIDs:       "prompt",
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
	m := w.get("prompt")
	if m.absent() {
		return m.missing()
	}
	c := jsonscan.New(m.value)
	if m.isArray() && c.Open('[') && (c.Peek() == '"' || c.Peek() == '[') {
		inner := raw(c.Raw())
		if c.More(']') {
			return badRequest(m.name, "only one prompt per request is supported")
		}
		m.value = inner
	}
	if m.isArray() {
		return m.readTokenIDs(p)
	}
	return m.readText(p)
}
