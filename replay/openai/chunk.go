package openai

import (
	"fmt"

	"github.com/bytedance/sonic"

	"moontide/replay"
	"moontide/trace"
)

// done is the data of the event that ends a stream.
const done = "[DONE]"

var json = sonic.Config{SortMapKeys: true, ValidateString: true, CopyString: true}.Froze()

// events is decoded in the path of every event: it skips the copies that its
// caller does not need.
var events = sonic.Config{NoValidateJSONMarshaler: true}.Froze()

// chunk is what is looked at of one event of a stream, chat or completions.
type chunk struct {
	Choices []struct {
		Text  string `json:"text"`
		Delta struct {
			Content          string     `json:"content"`
			ReasoningContent string     `json:"reasoning_content"`
			Reasoning        string     `json:"reasoning"`
			ToolCalls        []struct{} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage    `json:"usage"`
	Error *apiError `json:"error"`
}

type usage struct {
	PromptTokens     *int `json:"prompt_tokens"`
	CompletionTokens *int `json:"completion_tokens"`
	Details          *struct {
		CachedTokens *int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHitTokens *int `json:"prompt_cache_hit_tokens"`
}

type apiError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
}

// hasToken reports whether the chunk carries part of the answer: text,
// reasoning or a tool call. A role, a finish reason or usage is none.
func (c *chunk) hasToken() bool {
	for i := range c.Choices {
		d := &c.Choices[i].Delta
		if c.Choices[i].Text != "" || d.Content != "" || d.ReasoningContent != "" || d.Reasoning != "" || len(d.ToolCalls) > 0 {
			return true
		}
	}
	return false
}

// finished reports whether the chunk says why the answer ended.
func (c *chunk) finished() bool {
	for i := range c.Choices {
		if c.Choices[i].FinishReason != "" {
			return true
		}
	}
	return false
}

// counts merges what this chunk says into what earlier ones said: some servers
// send usage with every chunk, and the last is the whole.
func (u *usage) counts(c replay.Counts) replay.Counts {
	set := func(o *trace.Opt[int], n *int) {
		if n != nil && *n >= 0 {
			*o = trace.Some(*n)
		}
	}
	set(&c.Input, u.PromptTokens)
	set(&c.Output, u.CompletionTokens)
	set(&c.Cached, u.CacheHitTokens)
	if u.Details != nil {
		set(&c.Cached, u.Details.CachedTokens)
	}
	return c
}

// errorText says what a body that is not an answer says, on one line.
func errorText(status int, body []byte) string {
	var wrapped struct {
		Error   *apiError `json:"error"`
		Message string    `json:"message"` // vLLM before 0.10
		Detail  any       `json:"detail"`  // FastAPI
	}
	text := string(body)
	if json.Unmarshal(body, &wrapped) == nil {
		switch {
		case wrapped.Error != nil && wrapped.Error.Message != "":
			text = wrapped.Error.Message
		case wrapped.Message != "":
			text = wrapped.Message
		case wrapped.Detail != nil:
			text = fmt.Sprint(wrapped.Detail)
		}
	}
	return fmt.Sprintf("HTTP status %d: %s", status, oneLine(text))
}

// oneLine shortens foreign text so that it can stand in a log or a table.
func oneLine(s string) string {
	const most = 200
	out := make([]rune, 0, most)
	for _, c := range s {
		if c < ' ' || c == 0x7f {
			c = ' '
		}
		if out = append(out, c); len(out) == most {
			return string(out) + "..."
		}
	}
	return string(out)
}
