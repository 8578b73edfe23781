package openai

import (
	"moontide/replay/prompt"
	"moontide/trace"
)

// appendMessages appends the messages of /v1/chat/completions: the row's own, or
// one of the user with the row's own text or p.
func appendMessages(body []byte, r trace.Request, p prompt.Prompt) []byte {
	body = append(body, `,"messages":`...)
	if own, ok := r.Raw("messages"); ok {
		return append(body, own...)
	}
	body = append(body, `[{"role":"user","content":`...)
	if own, ok := ownText(r); ok {
		body = append(body, own...)
	} else {
		body = appendText(body, p)
	}
	return append(body, "}]"...)
}
