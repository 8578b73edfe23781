package server

import "math"

// chatAPI is OpenAI's chat completions. Reasoning is reasoning_content, as with
// DeepSeek, SGLang and vLLM.
var chatAPI = api{
	name: "chat", path: "/v1/chat/completions",
	idPrefix:    "chatcmpl-",
	promptParam: "messages",
	maxTokens:   math.MaxInt,

	readPrompt:     readChat,
	readParameters: choiceParameters,

	encoder: &choices{
		object:        "chat.completion",
		chunkObject:   "chat.completion.chunk",
		wholeOpening:  `{"index":0,"message":{"role":"assistant","content":"`,
		wholeThinking: `{"index":0,"message":{"role":"assistant","reasoning_content":"`,
		thinkingEnd:   `","content":"`,
		role:          `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`,
		opening:       `{"index":0,"delta":{"content":"`,
		thinkOpening:  `{"index":0,"delta":{"reasoning_content":"`,
		closing:       `"},"logprobs":null,"finish_reason":`,
	},
	errorBody:          openAIError,
	separatesReasoning: true,
}

// readChat adds the contents of all messages to the prompt.
func readChat(w *wireRequest, p tokens) *apiError {
	return w.readMessages("messages", messageForm{textParts: []string{"text"}, reasoning: true}, p)
}
