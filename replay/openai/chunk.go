package openai

import (
	"bytes"
	"fmt"
	"moontide/trace/jsonscan"
	"unsafe"

	"github.com/bytedance/sonic"
)

// done is the data of the event that ends a stream.
const done = "[DONE]"

// events is decoded in the path of every event: it copies nothing.
var events = sonic.Config{NoValidateJSONMarshaler: true}.Froze()

// chunk is what is looked at of one event of a stream, chat or completions.
type chunk struct {
	Choices []struct {
		Text  part `json:"text"`
		Delta struct {
			Content          part `json:"content"`
			ReasoningContent part `json:"reasoning_content"`
			Reasoning        part `json:"reasoning"`
			ToolCalls        part `json:"tool_calls"`
		} `json:"delta"`
		FinishReason part `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
	// Timings are llama.cpp's own; its usage does not tell what was cached.
	Timings part `json:"timings"`
	Error   part `json:"error"`
}

// part is JSON that is not looked into: whether an answer goes on does not
// depend on what it says.
type part = sonic.NoCopyRawMessage

// present reports whether a part says anything: a string that is not empty or
// a list with something in it.
func present(p part) bool {
	if len(p) <= len(`""`) {
		return false
	}
	return p[0] == '"' || p[0] == '[' && len(bytes.TrimSpace(p[1:len(p)-1])) > 0
}

// decode makes c the chunk that an event's data is. c refers to data and is
// valid as long as data is.
func (c *chunk) decode(data []byte) error {
	// A decoder may leave in a reused element what the new text does not name.
	clear(c.Choices)
	*c = chunk{Choices: c.Choices[:0]}
	return events.UnmarshalFromString(unsafe.String(unsafe.SliceData(data), len(data)), c)
}

// hasToken reports whether the chunk carries part of the answer: text,
// reasoning or a tool call. A role, a finish reason or usage is none.
func (c *chunk) hasToken() bool {
	for i := range c.Choices {
		d := &c.Choices[i].Delta
		if present(c.Choices[i].Text) || present(d.Content) || present(d.ReasoningContent) || present(d.Reasoning) || present(d.ToolCalls) {
			return true
		}
	}
	return false
}

// finished reports whether the chunk says why the answer ended.
func (c *chunk) finished() bool {
	for i := range c.Choices {
		if present(c.Choices[i].FinishReason) {
			return true
		}
	}
	return false
}

// failure returns the message of a chunk that is an error, or that says of the
// answer that it was broken off.
func (c *chunk) failure() (message string, ok bool) {
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return errorMessage(c.Error), true
	}
	for i := range c.Choices {
		var reason string
		if raw := c.Choices[i].FinishReason; present(raw) && jsonscan.Strict.Unmarshal(raw, &reason) == nil && brokenOff[reason] {
			return fmt.Sprintf("the server broke the answer off: finish_reason is %q", reason), true
		}
	}
	return "", false
}

// brokenOff are the reasons of answers that the server itself broke off. They
// go on to [DONE] as if they were whole.
var brokenOff = map[string]bool{
	"abort":     true, // vLLM, SGLang
	"error":     true, // vLLM, Dynamo
	"cancelled": true, // TensorRT-LLM
	"timeout":   true, // TensorRT-LLM
}

// tally is what this chunk says of counts.
func (c *chunk) tally() (t tally) {
	if c.Usage != nil {
		t = c.Usage.tally()
	}
	if len(c.Timings) > 0 {
		var timings struct {
			Cached *int `json:"cache_n"`
		}
		if events.Unmarshal(c.Timings, &timings) == nil {
			set(&t.timed, timings.Cached)
		}
	}
	return t
}
