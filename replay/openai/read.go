package openai

import (
	"cmp"
	"fmt"
	"strings"

	"moontide/replay"
	"moontide/trace/jsonscan"
)

// chunkInfo is the progress of an answer reported by one event.
type chunkInfo struct {
	hasToken bool // text, reasoning or a tool call
	visible  bool // text or a tool call
	finished bool // it has a finish reason
	done     bool // it ends the answer
	choice   bool // it is not only usage
	counted  bool // it has tokens if usage has grown
	tokenIDs int  // number of token ids, if it has those of its tokens only
	usage    usageCounts
}

// tokenEvidence is how a server tells the tokens of a chunk.
type tokenEvidence uint8

const (
	inUsage    tokenEvidence = 1 << iota // usage in each chunk
	inTokenIDs                           // the token ids of each chunk
)

func (info *chunkInfo) tokenEvidence() (e tokenEvidence) {
	if info.choice && info.usage.output.Set {
		e |= inUsage
	}
	if info.tokenIDs > 0 {
		e |= inTokenIDs
	}
	return e
}

// eventReader reads an event in one pass and without allocating. What is not known is
// skipped.
type eventReader struct {
	c       jsonscan.Cursor
	p       *pieces // that are added to the answer; may be nil
	info    chunkInfo
	failure string // why the answer failed, in the server's words

	kind, text, message []byte // the type of the event, and what it means depends on it
}

// fail records why the answer failed, unless the server said it.
func (r *eventReader) fail(why string) {
	if r.failure == "" {
		r.failure = why
	}
}

// error reads an error, which may be null.
func (r *eventReader) error() {
	if !null(&r.c) {
		r.failure = errorMessage(r.c.Raw())
	}
}

// readEvent reads an event of a stream, or a whole answer without streaming, of any API.
// It adds new content to p, unless p is nil.
func readEvent(data []byte, p *pieces) (chunkInfo, error) {
	var r eventReader
	r.c, r.p = jsonscan.New(data), p
	for more := r.c.Open('{'); more; more = r.c.More('}') {
		r.member(r.c.Key())
	}
	r.conclude()
	switch {
	case !r.c.Done():
		return chunkInfo{}, answerError{replay.Protocol, "event is not one of the API: " + string(data)}
	case r.failure != "":
		return chunkInfo{}, answerError{replay.Server, r.failure}
	}
	return r.info, nil
}

// member reads a member of an event.
func (r *eventReader) member(key []byte) {
	c := &r.c
	switch string(key) {
	case "choices":
		r.choices()
	case "usage":
		r.usage()
	case "timings":
		r.timings()
	case "error":
		r.error()
	case "status":
		r.status()
	case "type":
		r.kind, _ = scanString(c)
	case "delta": // of the Responses API, else of the Messages API
		if c.Peek() == '{' {
			r.delta()
		} else {
			r.text, _ = scanString(c)
		}
	case "message": // an error of the Responses API, or an answer so far
		if c.Peek() == '{' {
			r.within()
		} else {
			r.message, _ = scanString(c)
		}
	case "response":
		r.within()
	case "meta_info":
		r.metaInfo()
	case "output_ids":
		r.p.scanIDs(c)
	default:
		c.Skip()
	}
}

// within reads a nested answer object.
func (r *eventReader) within() {
	c := &r.c
	if null(c) {
		return
	}
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.Key()) {
		case "usage":
			r.usage()
		case "status":
			r.status()
		case "error":
			r.error()
		default:
			c.Skip()
		}
	}
}

// conclude applies the type of an event, which may follow its other members.
func (r *eventReader) conclude() {
	info := &r.info
	switch string(r.kind) {
	case "":
	case "content_block_delta":
		info.choice = true
	case "message_start":
		info.usage.output.Set = false // of no token yet
	case "message_stop":
		info.done = true
	case "response.completed", "response.incomplete": // as an answer of max_output_tokens is
		info.done, info.finished = true, true
	case "response.failed", "response.cancelled":
		r.fail(fmt.Sprintf("the server aborted the answer: its status is %q", r.kind[len("response."):]))
	case "error":
		r.fail(cmp.Or(unescaped(r.message), "error"))
	case "response.output_text.delta", "response.refusal.delta":
		r.p.add(r.text, nil, nil)
		r.typedToken(true)
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta",
		"response.mcp_call_arguments.delta", "response.code_interpreter_call_code.delta":
		r.p.add(nil, nil, errToolCall)
		r.typedToken(true)
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta",
		"response.reasoning.delta", "response.reasoning_part.delta": // older vLLM
		r.p.add(nil, r.text, nil)
		r.typedToken(false)
	}
}

// typedToken handles the text of an event whose type gives the kind of text.
func (r *eventReader) typedToken(visible bool) {
	r.info.choice = true
	r.info.hasToken = len(r.text) > 0
	r.info.visible = visible && r.info.hasToken
}

// timings reads the cached tokens of llama.cpp, whose usage lacks them.
func (r *eventReader) timings() {
	if r.c.Peek() != '{' {
		r.c.Skip()
		return
	}
	cached := r.info.usage.cached
	if scanDetails(&r.c, "cache_n", &r.info.usage.cached); cached.Set {
		r.info.usage.cached = cached
	}
}

func (r *eventReader) choices() {
	c, info := &r.c, &r.info
	if null(c) {
		return
	}
	for more := c.Open('['); more; more = c.More(']') {
		info.choice = true
		for more := c.Open('{'); more; more = c.More('}') {
			switch string(c.Key()) {
			case "text":
				if r.p.scanText(c) {
					info.hasToken, info.visible = true, true
				}
			case "delta":
				r.delta()
			case "finish_reason":
				r.finishReason()
			case "token_ids":
				info.tokenIDs += r.p.scanIDs(c)
			default:
				c.Skip()
			}
		}
	}
}

// delta reads new content of a choice or message block, or a message's stop reason.
func (r *eventReader) delta() {
	c, info := &r.c, &r.info
	if null(c) {
		return
	}
	for more := c.Open('{'); more; more = c.More('}') {
		visible, reasoning := false, false
		switch string(c.Key()) {
		case "content", "refusal", "text":
			visible = r.p.scanText(c)
		case "reasoning_content", "reasoning", "thinking":
			reasoning = r.p.scanReasoning(c)
		case "tool_calls", "partial_json":
			visible = r.p.scanCall(c)
		case "stop_reason":
			info.finished = c.Skip()
		default:
			c.Skip()
		}
		info.visible = info.visible || visible
		info.hasToken = info.hasToken || visible || reasoning
	}
}

// finishReason reads the finish reason of a choice.
func (r *eventReader) finishReason() {
	if r.c.Peek() != '"' {
		r.info.finished = r.c.Skip() || r.info.finished
		return
	}
	switch text := r.c.Text(); string(text) {
	case "":
		return
	case "stop", "length", "tool_calls":
	default:
		if reason := unescaped(text); aborted[strings.ToLower(reason)] {
			r.fail(fmt.Sprintf("the server aborted the answer: finish_reason is %q", reason))
		}
	}
	r.info.finished = true
}

// status reads the status of an answer of the Responses API.
func (r *eventReader) status() {
	if status, _ := scanString(&r.c); string(status) == "failed" || string(status) == "cancelled" {
		r.fail(fmt.Sprintf("the server aborted the answer: its status is %q", status))
	}
}

// metaInfo reads the token counts and finish reason in each event of SGLang's own API.
func (r *eventReader) metaInfo() {
	c, n := &r.c, &r.info.usage
	r.info.counted, r.info.choice = true, true
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.Key()) {
		case "prompt_tokens":
			scanCount(c, &n.input)
		case "completion_tokens":
			scanCount(c, &n.output)
		case "cached_tokens":
			scanCount(c, &n.cached)
		case "finish_reason":
			if !null(c) {
				r.generateReason()
			}
		default:
			c.Skip()
		}
	}
}

// generateReason reads the finish reason of SGLang's own API, an object.
func (r *eventReader) generateReason() {
	var reason struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	r.info.finished = true
	if jsonscan.Strict.Unmarshal(r.c.Raw(), &reason) == nil && aborted[reason.Type] {
		r.fail(fmt.Sprintf("the server aborted the answer: %s", reason.Message))
	}
}

// aborted holds the finish reasons of answers that the server aborted, in lower
// case. Their streams continue to [DONE] as if they were complete.
var aborted = map[string]bool{
	"abort":                        true, // vLLM, SGLang
	"aborted":                      true,
	"error":                        true, // vLLM, Dynamo
	"failed":                       true,
	"cancelled":                    true, // TensorRT-LLM
	"canceled":                     true,
	"timeout":                      true, // TensorRT-LLM
	"insufficient_system_resource": true, // DeepSeek
	"network_error":                true,
}

// unescaped returns what a string's text between its quotes says.
func unescaped(text []byte) (said string) {
	jsonscan.Strict.UnmarshalFromString(`"`+string(text)+`"`, &said)
	return said
}
