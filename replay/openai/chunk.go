package openai

import (
	"bytes"
	"fmt"
	"strings"
	"unsafe"

	"github.com/bytedance/sonic"

	"moontide/trace/jsonscan"
)

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
