package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"moontide/trace/jsonscan"
)

// api is one of the HTTP APIs that servers offer: how its requests are written.
type api struct {
	name     string // value of Config.Endpoint
	path     string // of requests, after the server's base
	tokenIDs bool   // prompts can be token ids
	messages string // key of a row's own messages; "" if the API takes none
	limit    string // key of the output length; "" for choices: servers differ
	// ignoreEOS and minTokens report whether the API has these members.
	ignoreEOS, minTokens bool
	headers              []Header // of every request, unless configured
	// prompt returns what a body has before and after a prompt of a form.
	prompt func(form string) (before, after string)
	// layout returns the parts of a body that all requests have in common.
	layout func(m members) layout
}

// raw is JSON that is not decoded.
type raw = json.RawMessage

// hasChoices reports whether the API is one of those that answer with choices, whose
// servers differ in the members they take.
func (a *api) hasChoices() bool { return a.limit == "" }

// apis lists the APIs; the first is the default.
var apis = []*api{&completionsAPI, &chatAPI, &responsesAPI, &messagesAPI, &generateAPI}

// completionsAPI takes a prompt as text or token ids.
var completionsAPI = api{
	name: Completions, path: "/v1/completions", tokenIDs: true, ignoreEOS: true, minTokens: true,
	prompt: func(string) (before, after string) { return `,"prompt":`, "" },
	layout: choicesLayout,
}

// chatAPI takes the messages of a chat.
var chatAPI = api{
	name: Chat, path: "/v1/chat/completions", messages: "messages", ignoreEOS: true, minTokens: true,
	prompt: func(string) (before, after string) { return `,"messages":[{"role":"user","content":`, "}]" },
	layout: choicesLayout,
}

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
}

// messagesAPI is Anthropic's Messages API. Its answers are blocks of text, of
// thinking and of calls of tools.
var messagesAPI = api{
	name: Messages, path: "/v1/messages", messages: "messages", limit: maxTokens,
	headers: []Header{{"anthropic-version", "2023-06-01"}},
	prompt:  chatAPI.prompt,
	layout: func(m members) (l layout) {
		l.head, l.limit = m.open(), []byte(`,"max_tokens":`)
		l.tail = append(appendMembers([]byte(`,"stream":true`), slices.Concat(m.extra, m.sampling)...), '}')
		return l
	},
}

// generateAPI is SGLang's own API. Each event has all token ids so far, or what is new,
// and the counts so far, which tell the tokens of a chunk.
var generateAPI = api{
	name: Generate, path: "/generate", tokenIDs: true, ignoreEOS: true, minTokens: true, limit: "max_new_tokens",
	prompt: func(form string) (before, after string) {
		if form == Tokens {
			return `,"input_ids":`, ""
		}
		return `,"text":`, ""
	},
	layout: func(m members) (l layout) {
		l.head, l.limit = []byte(`{"stream":true`), []byte(`,"sampling_params":{"max_new_tokens":`)
		if m.caps.minTokens {
			l.least = []byte(`,"min_new_tokens":`)
		}
		if m.caps.ignoreEOS {
			l.tail = append(l.tail, `,"ignore_eos":true`...)
		}
		l.tail = append(appendMembers(l.tail, m.sampling...), '}')
		l.tail = append(appendMembers(l.tail, m.extra...), '}')
		return l
	},
}

// choicesLayout returns the layout of the APIs that answer with choices.
func choicesLayout(m members) (l layout) {
	caps := m.caps
	l.head = m.open()
	l.limit = fmt.Appendf(nil, `,%q:`, caps.limit)
	if caps.minTokens && !m.has("min_tokens") {
		l.least = []byte(`,"min_tokens":`)
	}
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
	if caps.ignoreEOS && !m.has("ignore_eos") {
		l.tail = append(l.tail, `,"ignore_eos":true`...)
	}
	all := slices.SortedFunc(slices.Values(slices.Concat(m.extra, m.sampling)), func(a, b member) int { return strings.Compare(a.key, b.key) })
	l.tail = append(appendMembers(l.tail, all...), '}')
	return l
}

// Endpoints returns all values of Config.Endpoint.
func Endpoints() (names []string) {
	for _, a := range apis {
		names = append(names, a.name)
	}
	return names
}

// apiOf returns the API of an endpoint, nil if there is none.
func apiOf(endpoint string) *api {
	for _, a := range apis {
		if a.name == endpoint {
			return a
		}
	}
	return nil
}

// members are the members of a body that do not depend on the row.
type members struct {
	model    string
	caps     *capabilities
	sampling []member // temperature and top_p
	extra    []member // Config.ExtraBody
}

// member is a member of a JSON object, encoded.
type member struct {
	key   string
	value raw
}

// layout is the text of a body around its prompt and its numbers:
//
//	head prompt limit N [least N] tail
type layout struct{ head, limit, least, tail []byte }

// open starts a body.
func (m *members) open() []byte {
	return append([]byte(`{"model":`), quoted(m.model)...)
}

// has reports whether Config.ExtraBody sets a key.
func (m *members) has(key string) bool { return hasKey(m.extra, key) }

func hasKey(list []member, key string) bool {
	return slices.ContainsFunc(list, func(m member) bool { return m.key == key })
}

// appendMembers appends members, each after a comma.
func appendMembers(b []byte, list ...member) []byte {
	for _, m := range list {
		b = append(append(b, ','), quoted(m.key)...)
		b = append(append(b, ':'), m.value...)
	}
	return b
}

// quoted returns a JSON string. s is UTF-8.
func quoted(s string) []byte {
	text, err := jsonscan.Strict.Marshal(s)
	if err != nil {
		panic(err) // not possible for UTF-8
	}
	return text
}
