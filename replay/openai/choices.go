package openai

import (
	"fmt"
	"slices"
	"strings"
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
