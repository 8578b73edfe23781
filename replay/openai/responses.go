package openai

import (
	"cmp"
	"fmt"
	"slices"

	"moontide/trace/jsonscan"
)

// responsesAPI is OpenAI's Responses API. Its events have a type; the last one has
// the usage.
var responsesAPI = api{
	name: Responses, path: "/v1/responses", messages: "input", ignoreEOS: true, limit: "max_output_tokens",
	prompt: func(string) (before, after string) { return `,"input":`, "" },
	layout: func(m members) (l layout) {
		l.head, l.limit = m.open(), []byte(`,"max_output_tokens":`)
		l.tail = append(l.tail, `,"stream":true`...)
		if !m.has("store") { // OpenAI stores responses otherwise
			l.tail = append(l.tail, `,"store":false`...)
		}
		if m.caps.ignoreEOS && !m.has("ignore_eos") {
			l.tail = append(l.tail, `,"ignore_eos":true`...)
		}
		l.tail = append(appendMembers(l.tail, slices.Concat(m.extra, m.sampling)...), '}')
		return l
	},
	read: readResponsesEvent,
}

// addDelta adds the delta of an event of a type. token and visible tell what it is.
func (p *pieces) addDelta(kind, delta []byte) (token, visible bool) {
	switch string(kind) {
	case "response.output_text.delta", "response.refusal.delta":
		p.add(delta, nil, nil)
		return true, true
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta",
		"response.mcp_call_arguments.delta", "response.code_interpreter_call_code.delta":
		p.add(nil, nil, errToolCall)
		return true, true
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta",
		"response.reasoning.delta", "response.reasoning_part.delta": // older vLLM
		p.add(nil, delta, nil)
		return true, false
	}
	return false, false
}

// readResponsesEvent reads an event, or a whole response.
func readResponsesEvent(data []byte, p *pieces) (chunkInfo, error) {
	var r eventReader
	r.c, r.p = jsonscan.New(data), p
	c, info := &r.c, &r.info
	var kind, delta, message []byte
	var text bool
	for more := c.Open('{'); more; more = c.More('}') {
		switch key := c.Key(); string(key) {
		case "type":
			kind = c.Text()
		case "delta":
			delta, text = scanString(c)
		case "message":
			message, _ = scanString(c)
		case "response":
			r.response()
		default:
			r.responseMember(key)
		}
	}
	token, visible := p.addDelta(kind, delta)
	info.hasToken, info.visible, info.choice = token && text, visible && text, token
	switch string(kind) {
	case "response.completed", "response.incomplete": // as an answer of max_output_tokens is
		info.done, info.finished = true, true
	case "response.failed", "response.cancelled":
		r.fail(fmt.Sprintf("the server aborted the answer: its status is %q", kind[len("response."):]))
	case "error":
		r.fail(cmp.Or(unescaped(message), "error"))
	}
	if r.failed() {
		return chunkInfo{}, r.err(data)
	}
	return r.info, nil
}

// response reads an answer so far.
func (r *eventReader) response() {
	c := &r.c
	if null(c) {
		return
	}
	for more := c.Open('{'); more; more = c.More('}') {
		r.responseMember(c.Key())
	}
}

// responseMember reads a member of an answer, or of the event that is one.
func (r *eventReader) responseMember(key []byte) {
	switch string(key) {
	case "usage":
		r.usage()
	case "status":
		r.status()
	case "error":
		r.error()
	default:
		r.c.Skip()
	}
}

// status reads the status of an answer.
func (r *eventReader) status() {
	if status, _ := scanString(&r.c); string(status) == "failed" || string(status) == "cancelled" {
		r.fail(fmt.Sprintf("the server aborted the answer: its status is %q", status))
	}
}
