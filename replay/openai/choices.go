package openai

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/bytedance/sonic"

	"moontide/trace/jsonscan"
)

// completionsAPI takes a prompt as text or token ids.
var completionsAPI = api{
	name: Completions, path: "/v1/completions", tokenIDs: true, ignoreEOS: true, minTokens: true,
	prompt: func(string) (before, after string) { return `,"prompt":`, "" },
	layout: choicesLayout, scan: scanChunk, decode: decodeChunk, whole: decodeChunk,
}

// chatAPI takes the messages of a chat.
var chatAPI = api{
	name: Chat, path: "/v1/chat/completions", messages: "messages", ignoreEOS: true, minTokens: true,
	prompt: func(string) (before, after string) { return `,"messages":[{"role":"user","content":`, "}]" },
	layout: choicesLayout, scan: scanChunk, decode: decodeChunk, whole: decodeChunk,
}

// choicesLayout returns the layout of the APIs that answer with choices.
func choicesLayout(m members) (l layout) {
	caps := m.caps
	l.head = m.open()
	l.limit = fmt.Appendf(nil, `,%q:`, caps.limit)
	l.least, l.tail = m.minimum()
	l.tail = append(l.tail, `,"stream":true`...)
	if caps.streamOptions {
		l.tail = append(l.tail, `,"stream_options":{"include_usage":true`...)
		if caps.chunkTokens&inUsage != 0 {
			l.tail = append(l.tail, `,"continuous_usage_stats":true`...)
		}
		l.tail = append(l.tail, '}')
	}
	if caps.chunkTokens&inTokenIDs != 0 && !m.has("return_token_ids") {
		l.tail = append(l.tail, `,"return_token_ids":true`...)
	}
	if caps.ignoreEOS && !caps.inNvext && !m.has("ignore_eos") {
		l.tail = append(l.tail, `,"ignore_eos":true`...)
	}
	all := slices.SortedFunc(slices.Values(slices.Concat(m.extra, m.sampling)), func(a, b member) int { return strings.Compare(a.key, b.key) })
	l.tail = append(appendMembers(l.tail, all...), '}')
	return l
}

// chunkJSON decodes events without copying them.
var chunkJSON = sonic.Config{NoValidateJSONMarshaler: true}.Froze()

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

// chunk holds the decoded members of one event, for either API.
type chunk struct {
	Choices []struct {
		Text  raw `json:"text"`
		Delta struct {
			Content          raw `json:"content"`
			ReasoningContent raw `json:"reasoning_content"`
			Reasoning        raw `json:"reasoning"`
			Thinking         raw `json:"thinking"`
			Refusal          raw `json:"refusal"`
			ToolCalls        raw `json:"tool_calls"`
		} `json:"delta"`
		FinishReason raw `json:"finish_reason"`
		TokenIDs     raw `json:"token_ids"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
	// Timings is llama.cpp's; its usage lacks cached tokens.
	Timings raw `json:"timings"`
	Error   raw `json:"error"`
}

// raw is JSON that is not decoded.
type raw = sonic.NoCopyRawMessage

// cursorOf returns a cursor at the start of a value.
func cursorOf(value raw) *jsonscan.Cursor {
	c := jsonscan.New(value)
	return &c
}

// nonEmpty reports whether r is a nonempty string or array.
func nonEmpty(r raw) bool {
	if len(r) <= len(`""`) {
		return false
	}
	return r[0] == '"' || r[0] == '[' && len(bytes.TrimSpace(r[1:len(r)-1])) > 0
}

// decode decodes an event into c. c refers to data afterwards.
func (c *chunk) decode(data []byte) error {
	// Decoding may leave old values in a reused element.
	clear(c.Choices)
	*c = chunk{Choices: c.Choices[:0]}
	return chunkJSON.UnmarshalFromString(unsafe.String(unsafe.SliceData(data), len(data)), c)
}

func (c *chunk) info(p *pieces) chunkInfo {
	info := chunkInfo{usage: c.usageCounts()}
	for i := range c.Choices {
		choice := &c.Choices[i]
		info.choice = true
		info.tokenIDs += p.scanIDs(cursorOf(choice.TokenIDs))
		d := &choice.Delta
		for _, content := range [...]raw{choice.Text, d.Content, d.Refusal} {
			info.visible = p.scanText(cursorOf(content)) || info.visible
		}
		info.visible = p.scanCall(cursorOf(d.ToolCalls)) || info.visible
		for _, reasoning := range [...]raw{d.ReasoningContent, d.Reasoning, d.Thinking} {
			info.hasToken = p.scanReasoning(cursorOf(reasoning)) || info.hasToken
		}
		info.hasToken = info.hasToken || info.visible
		info.finished = info.finished || nonEmpty(choice.FinishReason)
	}
	return info
}

// failure returns the message of a chunk that reports an error or an aborted
// answer.
func (c *chunk) failure() (message string, ok bool) {
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return errorMessage(c.Error), true
	}
	for i := range c.Choices {
		var reason string
		if text := c.Choices[i].FinishReason; nonEmpty(text) && jsonscan.Strict.Unmarshal(text, &reason) == nil && aborted[strings.ToLower(reason)] {
			return fmt.Sprintf("the server aborted the answer: finish_reason is %q", reason), true
		}
	}
	return "", false
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

// scanChunk parses an event of the most common form without the JSON decoder, at a
// quarter of the cost and without allocating. ok is false for anything else: an
// error, timings, an unusual finish reason, a duplicate or unusually spelled key,
// malformed JSON. Such an event has to be decoded; if ok is true, decoding would
// return the same.
func scanChunk(data []byte, p *pieces) (info chunkInfo, ok bool) {
	c := jsonscan.New(data)
	var seen uint32
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.LowerKey()) {
		case "choices":
			c.Once(&seen, 1)
			scanChoices(&c, &info, p)
		case "usage":
			c.Once(&seen, 2)
			scanUsage(&c, &info.usage)
		case "timings", "error":
			c.Null()
		default:
			c.Skip()
		}
	}
	return info, c.Done()
}

func scanChoices(c *jsonscan.Cursor, info *chunkInfo, p *pieces) {
	if null(c) {
		return
	}
	for more := c.Open('['); more; more = c.More(']') {
		var seen uint32
		info.choice = true
		for more := c.Open('{'); more; more = c.More('}') {
			switch string(c.LowerKey()) {
			case "text":
				c.Once(&seen, 1)
				if p.scanText(c) {
					info.hasToken, info.visible = true, true
				}
			case "delta":
				c.Once(&seen, 2)
				scanDelta(c, info, p)
			case "finish_reason":
				c.Once(&seen, 4)
				info.finished = scanReason(c) || info.finished
			case "token_ids":
				c.Once(&seen, 8)
				info.tokenIDs += p.scanIDs(c)
			default:
				c.Skip()
			}
		}
	}
}

// scanReason reports whether there is a finish reason. It fails for reasons that
// may mean an aborted answer.
func scanReason(c *jsonscan.Cursor) bool {
	if c.Peek() != '"' {
		return c.Skip()
	}
	switch string(c.Text()) {
	case "":
		return false
	case "stop", "length", "tool_calls":
		return true
	}
	c.Fail()
	return false
}

func scanDelta(c *jsonscan.Cursor, info *chunkInfo, p *pieces) {
	if null(c) {
		return
	}
	var seen uint32
	for more := c.Open('{'); more; more = c.More('}') {
		visible, reasoning := false, false
		switch string(c.LowerKey()) {
		case "content":
			c.Once(&seen, 1)
			visible = p.scanText(c)
		case "reasoning_content":
			c.Once(&seen, 2)
			reasoning = p.scanReasoning(c)
		case "reasoning":
			c.Once(&seen, 4)
			reasoning = p.scanReasoning(c)
		case "tool_calls":
			c.Once(&seen, 8)
			visible = p.scanCall(c)
		case "thinking":
			c.Once(&seen, 16)
			reasoning = p.scanReasoning(c)
		case "refusal":
			c.Once(&seen, 32)
			visible = p.scanText(c)
		default:
			c.Skip()
		}
		info.visible = info.visible || visible
		info.hasToken = info.hasToken || visible || reasoning
	}
}

// null reads null if it comes next.
func null(c *jsonscan.Cursor) bool {
	if c.Peek() != 'n' {
		return false
	}
	c.Null()
	return true
}
