package server

import (
	"fmt"
	"math"

	"github.com/valyala/fasthttp"
)

// messagesAPI is Anthropic's messages. Its input_tokens do not include the cached
// tokens: the prompt has input_tokens + cache_read_input_tokens. Reasoning is a
// thinking block.
var messagesAPI = api{
	name: "messages", path: "/v1/messages",
	idPrefix:    "msg_",
	promptParam: "messages",
	maxTokens:   math.MaxInt,

	readPrompt:     readMessagesPrompt,
	readParameters: messagesParameters,

	encoder:            messages{},
	errorBody:          anthropicError,
	separatesReasoning: true,
}

// readMessagesPrompt adds the system prompt and the contents of all messages.
func readMessagesPrompt(w *wireRequest, p tokens) *apiError {
	form := messageForm{textParts: []string{"text"}, skipped: []string{"thinking", "redacted_thinking"}}
	if system := w.get("system"); !system.absent() {
		if err := readContent(system, form, p); err != nil {
			return err
		}
	}
	return w.readMessages("messages", form, p)
}

func messagesParameters(w *wireRequest) (parameters, *apiError) {
	p := w.openParameters()
	p.maxTokens = []parameter{w.get("max_tokens")}
	if p.maxTokens[0].absent() {
		return p, badRequest("max_tokens", "max_tokens: Field required")
	}
	return p, nil
}

// anthropicError is the body of an error, and the data of an error event.
func anthropicError(e *apiError) any {
	kind := "invalid_request_error"
	switch {
	case e.status == fasthttp.StatusNotFound:
		kind = "not_found_error"
	case e.status == fasthttp.StatusRequestEntityTooLarge:
		kind = "request_too_large"
	case e.status == fasthttp.StatusTooManyRequests:
		kind = "rate_limit_error"
	case e.status >= fasthttp.StatusInternalServerError:
		kind = "api_error"
	}
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	return struct {
		Type  string `json:"type"`
		Error detail `json:"error"`
	}{"error", detail{kind, e.message}}
}

// messages encodes the answers of messagesAPI.
type messages struct{}

// appendMessage appends a message of which the content and the end are known, or
// the start of a stream.
func (messages) appendMessage(b []byte, a *answer, content, stop []byte, u usage, tokens int) []byte {
	b = fmt.Appendf(b, `{"id":"%s%s","type":"message","role":"assistant","model":%s,"content":[%s],%s,`,
		a.api.idPrefix, a.id, a.model, content, stop)
	b = messages{}.appendUsage(b, u, tokens)
	return append(b, '}')
}

func (messages) appendUsage(b []byte, u usage, tokens int) []byte {
	b = appendMember(b, `"usage":{"input_tokens":`, u.prompt-u.cached)
	b = appendMember(b, `,"cache_creation_input_tokens":0,"cache_read_input_tokens":`, u.cached)
	b = appendMember(b, `,"output_tokens":`, tokens)
	return append(b, '}')
}

// appendStop appends why an answer ended.
func (messages) appendStop(b []byte, a *answer) []byte {
	reason := "end_turn"
	if a.reason == FinishLength {
		reason = "max_tokens"
	}
	return fmt.Appendf(b, `"stop_reason":"%s","stop_sequence":null`, reason)
}

func (m messages) appendWhole(b []byte, a *answer, u usage) []byte {
	var content []byte
	for _, part := range a.parts() {
		if part.index > 0 {
			content = append(content, ',')
		}
		if part.reasoning {
			content = append(content, `{"type":"thinking","thinking":"`...)
			content = a.appendText(content, part)
			content = fmt.Appendf(content, `","signature":"%s"}`, a.id)
			continue
		}
		content = append(content, `{"type":"text","text":"`...)
		content = a.appendText(content, part)
		content = append(content, `"}`...)
	}
	return m.appendMessage(b, a, content, m.appendStop(nil, a), u, a.tokens)
}

func (messages) begin(a *answer) {
	opening := func(delta string, index int) []byte {
		return fmt.Appendf(openEvent(nil, "content_block_delta"), `,"index":%d,"delta":{%s":"`, index, delta)
	}
	for _, part := range a.parts() {
		if part.reasoning {
			a.thinking = opening(`"type":"thinking_delta","thinking`, part.index)
		} else {
			a.opening = opening(`"type":"text_delta","text`, part.index)
		}
	}
}

func (messages) appendAccepted(b []byte, _ *answer, _ int64) []byte { return b }

func (m messages) appendToken(b []byte, a *answer, k int, u usage, stamp int64) []byte {
	if k == 0 {
		b = append(openEvent(b, "message_start"), `,"message":`...)
		b = m.appendMessage(b, a, nil, []byte(`"stop_reason":null,"stop_sequence":null`), u, 1)
		b = a.closeEvent(b, stamp)
	}
	if a.startsPart(k) {
		b = m.openPart(b, a, k, stamp)
	}
	b = append(b, a.tokenOpening(k)...)
	b = append(b, a.word(k)...)
	b = append(b, `"}`...)
	return a.closeEvent(b, stamp)
}

// openPart appends the events before token k, the first one of a part.
func (m messages) openPart(b []byte, a *answer, k int, stamp int64) []byte {
	if k > 0 {
		b = m.closePart(b, a, a.partOf(k-1), stamp)
	}
	block, p := `{"type":"text","text":""}`, a.partOf(k)
	if p.reasoning {
		block = `{"type":"thinking","thinking":"","signature":""}`
	}
	b = fmt.Appendf(openEvent(b, "content_block_start"), `,"index":%d,"content_block":%s`, p.index, block)
	b = a.closeEvent(b, stamp)
	if k == 0 {
		b = a.closeEvent(openEvent(b, "ping"), stamp)
	}
	return b
}

// closePart appends the events after the last token of a part.
func (messages) closePart(b []byte, a *answer, p part, stamp int64) []byte {
	if p.reasoning {
		b = fmt.Appendf(openEvent(b, "content_block_delta"), `,"index":%d,"delta":{"type":"signature_delta","signature":"%s"}`, p.index, a.id)
		b = a.closeEvent(b, stamp)
	}
	b = appendMember(openEvent(b, "content_block_stop"), `,"index":`, p.index)
	return a.closeEvent(b, stamp)
}

func (m messages) appendEnd(b []byte, a *answer, u usage, stamp int64) []byte {
	b = m.closePart(b, a, a.partOf(a.tokens-1), stamp)
	b = append(openEvent(b, "message_delta"), `,"delta":{`...)
	b = append(m.appendStop(b, a), "},"...)
	b = m.appendUsage(b, u, a.tokens)
	b = a.closeEvent(b, stamp)
	return a.closeEvent(openEvent(b, "message_stop"), stamp)
}

func (messages) appendError(b []byte, a *answer, e *apiError, _ int64) []byte {
	b = append(b, "event: error\ndata: "...)
	b = append(b, e.encode(a.api)...)
	return append(b, "\n\n"...)
}
