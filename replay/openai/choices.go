package openai

import (
	"fmt"
	"slices"
	"strings"

	"moontide/trace/jsonscan"
)

// completionsAPI takes a prompt as text or token ids.
var completionsAPI = api{
	name: Completions, path: "/v1/completions", tokenIDs: true, ignoreEOS: true, minTokens: true,
	prompt: func(string) (before, after string) { return `,"prompt":`, "" },
	layout: choicesLayout, read: readChunk,
}

// chatAPI takes the messages of a chat.
var chatAPI = api{
	name: Chat, path: "/v1/chat/completions", messages: "messages", ignoreEOS: true, minTokens: true,
	prompt: func(string) (before, after string) { return `,"messages":[{"role":"user","content":`, "}]" },
	layout: choicesLayout, read: readChunk,
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

func readChunk(data []byte, p *pieces) (chunkInfo, error) {
	var r eventReader
	r.c, r.p = jsonscan.New(data), p
	c := &r.c
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.Key()) {
		case "choices":
			r.choices()
		case "usage":
			r.usage()
		case "timings":
			r.timings()
		case "error":
			r.error()
		default:
			c.Skip()
		}
	}
	if r.failed() {
		return chunkInfo{}, r.err(data)
	}
	return r.info, nil
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

func (r *eventReader) delta() {
	c, info := &r.c, &r.info
	if null(c) {
		return
	}
	for more := c.Open('{'); more; more = c.More('}') {
		visible, reasoning := false, false
		switch string(c.Key()) {
		case "content", "refusal":
			visible = r.p.scanText(c)
		case "reasoning_content", "reasoning", "thinking":
			reasoning = r.p.scanReasoning(c)
		case "tool_calls":
			visible = r.p.scanCall(c)
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
