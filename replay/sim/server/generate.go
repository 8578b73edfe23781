package server

// generateAPI is SGLang's native API. Each event has the text so far, and the ids
// of the tokens that are new. Reasoning is part of the text.
var generateAPI = api{
	name: "generate", path: "/generate",
	promptParam: "text", prompt: []promptPart{{"input_ids", tokenArray}, {"text", aString}}, tokenIDs: "input_ids", objects: []string{"sampling_params"},
	limits: []string{"sampling_params.max_new_tokens"}, least: "sampling_params.min_new_tokens", ignoreEOS: "sampling_params.ignore_eos",
	maxTokens: 128, // as in SGLang

	forms: forms{
		text:    partForms{token: formOf(dataForm(generated))},
		ended:   formOf(streamDone),
		whole:   formOf(generated + "}"),
		running: formOf("null"),
		stop:    formOf(`{"type":"stop","matched":2}`), // the id of the token that ends an answer
		length:  formOf(`{"type":"length","length":$output}`),
		failure: formOf(generateError),
		failed:  formOf("data: " + generateError + "\n\n" + streamDone),
	},
}

// generated is the answer up to the current token.
const generated = `{"text":"$sofar","output_ids":[$ids],"meta_info":{"id":"$id","finish_reason":$finish,` +
	`"prompt_tokens":$prompt,"completion_tokens":$output,"cached_tokens":$cached}`

const generateError = `{"error":{"message":$message}}`
