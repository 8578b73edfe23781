package openai

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/bytedance/sonic"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/jsonscan"
)

// chunkJSON decodes events without copying them.
var chunkJSON = sonic.Config{NoValidateJSONMarshaler: true}.Froze()

// chunkInfo is the progress of an answer reported by one event.
type chunkInfo struct {
	hasToken bool // text, reasoning or a tool call
	finished bool // it has a finish reason
	usage    usageCounts
}

// chunk holds the decoded members of one event, for either API.
type chunk struct {
	Choices []struct {
		Text  raw `json:"text"`
		Delta struct {
			Content          raw `json:"content"`
			ReasoningContent raw `json:"reasoning_content"`
			Reasoning        raw `json:"reasoning"`
			ToolCalls        raw `json:"tool_calls"`
		} `json:"delta"`
		FinishReason raw `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
	// Timings is llama.cpp's; its usage lacks cached tokens.
	Timings raw `json:"timings"`
	Error   raw `json:"error"`
}

// raw is JSON that is not decoded.
type raw = sonic.NoCopyRawMessage

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

func (c *chunk) info() chunkInfo {
	info := chunkInfo{usage: c.usageCounts()}
	for i := range c.Choices {
		choice := &c.Choices[i]
		d := &choice.Delta
		for _, content := range [...]raw{choice.Text, d.Content, d.ReasoningContent, d.Reasoning, d.ToolCalls} {
			info.hasToken = info.hasToken || nonEmpty(content)
		}
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
		if text := c.Choices[i].FinishReason; nonEmpty(text) && jsonscan.Strict.Unmarshal(text, &reason) == nil && aborted[reason] {
			return fmt.Sprintf("the server aborted the answer: finish_reason is %q", reason), true
		}
	}
	return "", false
}

// aborted holds the finish reasons of answers that the server aborted. Their
// streams continue to [DONE] as if they were complete.
var aborted = map[string]bool{
	"abort":     true, // vLLM, SGLang
	"error":     true, // vLLM, Dynamo
	"cancelled": true, // TensorRT-LLM
	"timeout":   true, // TensorRT-LLM
}

// usage is the usage object.
type usage struct {
	PromptTokens     *int `json:"prompt_tokens"`
	CompletionTokens *int `json:"completion_tokens"`
	Details          *struct {
		CachedTokens *int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHitTokens *int `json:"prompt_cache_hit_tokens"` // DeepSeek
	CachedTokens   *int `json:"cached_tokens"`           // Moonshot, older SGLang
}

// usageCounts are the token counts in one event.
type usageCounts struct {
	input, output trace.Opt[int]
	// Cached tokens by source; a later source overrides an earlier one.
	timings, cached, cacheHit, details trace.Opt[int]
}

func (c *chunk) usageCounts() (n usageCounts) {
	if u := c.Usage; u != nil {
		n = usageCounts{input: count(u.PromptTokens), output: count(u.CompletionTokens), cached: count(u.CachedTokens), cacheHit: count(u.CacheHitTokens)}
		if u.Details != nil {
			n.details = count(u.Details.CachedTokens)
		}
	}
	if len(c.Timings) > 0 {
		var timings struct {
			Cached *int `json:"cache_n"`
		}
		if chunkJSON.Unmarshal(c.Timings, &timings) == nil {
			n.timings = count(timings.Cached)
		}
	}
	return n
}

func count(n *int) trace.Opt[int] {
	if n == nil || *n < 0 {
		return trace.Opt[int]{}
	}
	return trace.Some(*n)
}

// update returns counts with those of n set. Counts are totals even from servers
// that send usage with every chunk.
func (n usageCounts) update(counts replay.Counts) replay.Counts {
	put(&counts.Input, n.input)
	put(&counts.Output, n.output)
	put(&counts.Cached, n.timings)
	put(&counts.Cached, n.cached)
	put(&counts.Cached, n.cacheHit)
	put(&counts.Cached, n.details)
	return counts
}

func put(to *trace.Opt[int], n trace.Opt[int]) {
	if n.Set {
		*to = n
	}
}
