package server

import (
	"fmt"
	"math"
	"strconv"
)

// responsesAPI is OpenAI's responses. An answer that reaches max_output_tokens is
// incomplete. Reasoning is an item of its own, in clear text as with open models.
var responsesAPI = api{
	name: "responses", path: "/v1/responses",
	idPrefix:    "resp_",
	promptParam: "input",
	maxTokens:   math.MaxInt,

	readPrompt:     readResponsesPrompt,
	readParameters: responsesParameters,

	encoder:            responses{},
	errorBody:          openAIError,
	separatesReasoning: true,
}

// readResponsesPrompt adds the instructions and the input, a text or messages.
func readResponsesPrompt(w *wireRequest, p tokens) *apiError {
	if instructions := w.get("instructions"); !instructions.absent() {
		if err := instructions.readText(p); err != nil {
			return err
		}
	}
	if input := w.get("input"); !input.absent() && input.value[0] == '"' {
		return input.readText(p)
	}
	form := messageForm{textParts: []string{"input_text", "output_text"}, skipped: []string{"reasoning"}}
	return w.readMessages("input", form, p)
}

func responsesParameters(w *wireRequest) (parameters, *apiError) {
	p := w.openParameters()
	p.maxTokens = []parameter{w.get("max_output_tokens")}
	var text struct {
		Format raw `json:"format"`
	}
	if err := w.get("text").decode("an object", &text); err != nil {
		return p, err
	}
	return p, parameter{"text.format", text.Format}.textOnly()
}

// responses encodes the answers of responsesAPI.
type responses struct{}

// responsePart is how a part of an answer is written: an item with one content.
type responsePart struct {
	idPrefix string
	item     string // what an item has after its id
	content  string // start of the content, up to the text
	event    string // start of the names of the text's events
	rest     string // what the text's events have besides
}

var (
	reasoningItem = responsePart{
		idPrefix: "rs_", item: `"type":"reasoning","summary":[]`,
		content: `{"type":"reasoning_text","text":"`, event: "response.reasoning_text",
	}
	messageItem = responsePart{
		idPrefix: "msg_", item: `"type":"message","role":"assistant"`,
		content: `{"type":"output_text","annotations":[],"logprobs":[],"text":"`, event: "response.output_text", rest: `,"logprobs":[]`,
	}
)

func responsePartOf(p part) *responsePart {
	if p.reasoning {
		return &reasoningItem
	}
	return &messageItem
}

// status returns the status of an answer that has ended.
func (responses) status(a *answer) string {
	if a.reason == FinishLength {
		return "incomplete"
	}
	return "completed"
}

// appendItem appends an item of the output. It has content if it is complete.
func (r responses) appendItem(b []byte, a *answer, p part, complete bool) []byte {
	form := responsePartOf(p)
	status := "in_progress"
	switch {
	case complete && p.upTo < a.tokens:
		status = "completed"
	case complete:
		status = r.status(a)
	}
	b = fmt.Appendf(b, `{"id":"%s%s",%s,"status":"%s","content":[`, form.idPrefix, a.id, form.item, status)
	if complete {
		b = r.appendContent(b, a, p)
	}
	return append(b, "]}"...)
}

func (responses) appendContent(b []byte, a *answer, p part) []byte {
	b = append(b, responsePartOf(p).content...)
	b = a.appendText(b, p)
	return append(b, `"}`...)
}

// appendResponse appends the whole answer, or what is known of it at the start.
func (r responses) appendResponse(b []byte, a *answer, u usage, complete bool) []byte {
	status, reason, most := "in_progress", "null", "null"
	if complete {
		status = r.status(a)
	}
	if status == "incomplete" {
		reason = `{"reason":"max_output_tokens"}`
	}
	if a.maxTokens > 0 {
		most = strconv.Itoa(a.maxTokens)
	}
	b = fmt.Appendf(b, `{"id":"%s%s","object":"response","created_at":%d,"status":"%s","background":false,"error":null,`+
		`"incomplete_details":%s,"instructions":null,"max_output_tokens":%s,"model":%s,"output":[`,
		a.api.idPrefix, a.id, a.created, status, reason, most, a.model)
	if complete {
		for _, p := range a.parts() {
			if p.index > 0 {
				b = append(b, ',')
			}
			b = r.appendItem(b, a, p, true)
		}
	}
	b = append(b, `],"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":null,"summary":null},"store":false,`+
		`"temperature":1.0,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled","usage":`...)
	if complete {
		b = r.appendUsage(b, a, u)
	} else {
		b = append(b, "null"...)
	}
	return append(b, `,"user":null,"metadata":{}}`...)
}

func (responses) appendUsage(b []byte, a *answer, u usage) []byte {
	b = appendMember(b, `{"input_tokens":`, u.prompt)
	b = appendMember(b, `,"input_tokens_details":{"cached_tokens":`, u.cached)
	b = appendMember(b, `},"output_tokens":`, a.tokens)
	b = appendMember(b, `,"output_tokens_details":{"reasoning_tokens":`, a.reasoning)
	b = appendMember(b, `},"total_tokens":`, u.prompt+a.tokens)
	return append(b, '}')
}

func (r responses) appendWhole(b []byte, a *answer, u usage) []byte {
	return r.appendResponse(b, a, u, true)
}

// closeEvent appends the end of an event, with its number.
func (responses) closeEvent(b []byte, a *answer, stamp int64) []byte {
	b = appendMember(b, `,"sequence_number":`, a.sequence)
	a.sequence++
	return a.closeEvent(b, stamp)
}

// openItemEvent appends the start of an event about an item.
func (responses) openItemEvent(b []byte, a *answer, p part, name string) []byte {
	return fmt.Appendf(openEvent(b, name), `,"item_id":"%s%s","output_index":%d,"content_index":0`, responsePartOf(p).idPrefix, a.id, p.index)
}

func (r responses) begin(a *answer) {
	for _, p := range a.parts() {
		opening := append(r.openItemEvent(nil, a, p, responsePartOf(p).event+".delta"), `,"delta":"`...)
		if p.reasoning {
			a.thinking = opening
		} else {
			a.opening = opening
		}
	}
}

func (r responses) appendAccepted(b []byte, a *answer, stamp int64) []byte {
	for _, name := range [...]string{"response.created", "response.in_progress"} {
		b = append(openEvent(b, name), `,"response":`...)
		b = r.appendResponse(b, a, usage{}, false)
		b = r.closeEvent(b, a, stamp)
	}
	return b
}

func (r responses) appendToken(b []byte, a *answer, k int, _ usage, stamp int64) []byte {
	if a.startsPart(k) {
		b = r.openPart(b, a, k, stamp)
	}
	b = append(b, a.tokenOpening(k)...)
	b = append(append(b, a.word(k)...), '"')
	if k >= a.reasoning {
		b = append(b, messageItem.rest...)
	}
	return r.closeEvent(b, a, stamp)
}

// openPart appends the events before token k, the first one of a part.
func (r responses) openPart(b []byte, a *answer, k int, stamp int64) []byte {
	if k > 0 {
		b = r.closePart(b, a, a.partOf(k-1), stamp)
	}
	p := a.partOf(k)
	b = appendMember(openEvent(b, "response.output_item.added"), `,"output_index":`, p.index)
	b = r.appendItem(append(b, `,"item":`...), a, p, false)
	b = r.closeEvent(b, a, stamp)
	b = append(r.openItemEvent(b, a, p, "response.content_part.added"), `,"part":`...)
	b = append(append(b, responsePartOf(p).content...), `"}`...)
	return r.closeEvent(b, a, stamp)
}

// closePart appends the events after the last token of a part.
func (r responses) closePart(b []byte, a *answer, p part, stamp int64) []byte {
	form := responsePartOf(p)
	b = append(r.openItemEvent(b, a, p, form.event+".done"), `,"text":"`...)
	b = append(a.appendText(b, p), '"')
	b = append(b, form.rest...)
	b = r.closeEvent(b, a, stamp)
	b = append(r.openItemEvent(b, a, p, "response.content_part.done"), `,"part":`...)
	b = r.appendContent(b, a, p)
	b = r.closeEvent(b, a, stamp)
	b = appendMember(openEvent(b, "response.output_item.done"), `,"output_index":`, p.index)
	b = r.appendItem(append(b, `,"item":`...), a, p, true)
	return r.closeEvent(b, a, stamp)
}

func (r responses) appendEnd(b []byte, a *answer, u usage, stamp int64) []byte {
	b = r.closePart(b, a, a.partOf(a.tokens-1), stamp)
	b = append(openEvent(b, "response."+r.status(a)), `,"response":`...)
	b = r.appendResponse(b, a, u, true)
	return r.closeEvent(b, a, stamp)
}

func (r responses) appendError(b []byte, a *answer, e *apiError, stamp int64) []byte {
	b = fmt.Appendf(openEvent(b, "error"), `,"code":"server_error","message":%s,"param":null`, quoted(e.message))
	return r.closeEvent(b, a, stamp)
}
