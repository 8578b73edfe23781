package openai

import (
	"fmt"
	"slices"

	"moontide/replay"
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
	scan: scanResponsesEvent, decode: decodeResponsesEvent, whole: decodeWholeResponse,
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

func scanResponsesEvent(data []byte, p *pieces) (info chunkInfo, ok bool) {
	c := jsonscan.New(data)
	var seen uint32
	var kind, delta []byte
	var text bool
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.LowerKey()) {
		case "type":
			c.Once(&seen, 1)
			kind = c.PlainText()
		case "delta":
			c.Once(&seen, 2)
			delta, text = scanString(&c)
		case "response", "error", "message":
			c.Fail()
		default:
			c.Skip()
		}
	}
	token, visible := p.addDelta(kind, delta)
	return chunkInfo{hasToken: token && text, visible: visible && text, choice: token}, c.Done() && token
}

// responsesEvent holds the decoded members of an event.
type responsesEvent struct {
	Type     string   `json:"type"`
	Delta    raw      `json:"delta"`
	Response response `json:"response"`
	Error    raw      `json:"error"`
	Message  string   `json:"message"`
}

// response is an answer so far, or a whole one.
type response struct {
	Status string          `json:"status"`
	Error  raw             `json:"error"`
	Usage  *responsesUsage `json:"usage"`
}

// failure returns the error of an answer that failed.
func (r *response) failure() error {
	switch {
	case present(r.Error):
		return answerError{replay.Server, errorMessage(r.Error)}
	case r.Status == "failed" || r.Status == "cancelled":
		return answerError{replay.Server, fmt.Sprintf("the server aborted the answer: its status is %q", r.Status)}
	}
	return nil
}

func decodeWholeResponse(body []byte, _ *pieces) (info chunkInfo, err error) {
	var r response
	if err := chunkJSON.Unmarshal(body, &r); err != nil {
		return info, notAnEvent(body)
	}
	return chunkInfo{usage: r.Usage.counts()}, r.failure()
}

type responsesUsage struct {
	Input   *float64 `json:"input_tokens"`
	Output  *float64 `json:"output_tokens"`
	Details struct {
		Cached *float64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning *float64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

func (u *responsesUsage) counts() (n usageCounts) {
	if u != nil {
		n = usageCounts{input: count(u.Input), output: count(u.Output), details: count(u.Details.Cached), reasoning: count(u.OutputDetails.Reasoning)}
	}
	return n
}

func decodeResponsesEvent(data []byte, p *pieces) (info chunkInfo, err error) {
	var e responsesEvent
	if err := chunkJSON.Unmarshal(data, &e); err != nil {
		return info, notAnEvent(data)
	}
	switch {
	case e.Type == "error" && e.Message != "":
		return info, answerError{replay.Server, e.Message}
	case present(e.Error):
		return info, answerError{replay.Server, errorMessage(e.Error)}
	case present(e.Response.Error):
		return info, answerError{replay.Server, errorMessage(e.Response.Error)}
	case e.Type == "response.failed" || e.Type == "response.cancelled":
		return info, answerError{replay.Server, fmt.Sprintf("the server aborted the answer: its status is %q", e.Response.Status)}
	}
	delta, text := scanString(cursorOf(e.Delta))
	token, visible := p.addDelta([]byte(e.Type), delta)
	info = chunkInfo{hasToken: token && text, visible: visible && text, choice: token, usage: e.Response.Usage.counts()}
	// An answer of max_output_tokens is incomplete.
	info.done = e.Type == "response.completed" || e.Type == "response.incomplete"
	info.finished = info.done
	return info, nil
}

// present reports whether a member is there and not null.
func present(r raw) bool { return len(r) > 0 && string(r) != "null" }

func notAnEvent(data []byte) error {
	return answerError{replay.Protocol, "event is not one of the API: " + string(data)}
}
