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

// chunkInfo is what one event tells of the progress of an answer.
type chunkInfo struct {
	hasToken bool // text, reasoning or a tool call
	finished bool // it gives the reason why the answer ended
	usage    usageCounts
}

// chunk is one event of a stream of either API, as far as it is read.
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
	// Timings are llama.cpp's, which has no cached tokens in its usage.
	Timings raw `json:"timings"`
	Error   raw `json:"error"`
}

// raw is JSON that is not decoded.
type raw = sonic.NoCopyRawMessage

// nonEmpty reports whether JSON is a string or an array that is not empty.
func nonEmpty(r raw) bool {
	if len(r) <= len(`""`) {
		return false
	}
	return r[0] == '"' || r[0] == '[' && len(bytes.TrimSpace(r[1:len(r)-1])) > 0
}

// decode fills c with an event's data, to which c then refers.
func (c *chunk) decode(data []byte) error {
	// Decoding may leave in a reused element what the new text does not name.
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

// failure returns the message of a chunk that reports an error or an answer that
// the server aborted.
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

// aborted are the finish reasons of answers that the server gave up. Their
// streams go on to [DONE] as if they were complete.
var aborted = map[string]bool{
	"abort":     true, // vLLM, SGLang
	"error":     true, // vLLM, Dynamo
	"cancelled": true, // TensorRT-LLM
	"timeout":   true, // TensorRT-LLM
}

// usage is the object of that name.
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
	// Cached tokens by the place that reports them; a later one wins.
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

// update replaces counts by those in n: servers that send usage with every chunk
// send totals.
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
