package openai

import (
	"moontide/replay/prompt"
	"moontide/trace"
)

// appendCompletionPrompt appends the prompt of /v1/completions: the row's own
// text, or p as token ids or as text.
func appendCompletionPrompt(body []byte, r trace.Request, p prompt.Prompt, form string) []byte {
	body = append(body, `,"prompt":`...)
	if own, ok := ownText(r); ok {
		return append(body, own...)
	}
	if form == Tokens {
		return p.AppendJSONTokens(body)
	}
	return appendText(body, p)
}
