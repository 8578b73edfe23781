package openai

import (
	"cmp"
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
	text     string // what a body has before a prompt of text
	after    string // what it has after a prompt
	ids      string // what it has before a prompt of token ids; "" if the API takes none
	messages string // key of a row's own messages; "" if the API takes none
	limit    string // key of the output length; "" for choices: servers differ
	least    string // key of the least output length; "" if there is none
	// ignoreEOS is whether the API has ignore_eos, and nested is the member that has it,
	// the lengths and sampling, or "".
	ignoreEOS bool
	nested    string
	stores    bool     // unless told not to, servers store answers
	headers   []Header // of every request, unless configured
}

// raw is JSON that is not decoded.
type raw = json.RawMessage

// hasChoices reports whether the API is one of those that answer with choices, whose
// servers differ in the members they take.
func (a *api) hasChoices() bool { return a.limit == "" }

// apis lists the APIs; the first is the default.
var apis = []*api{
	{
		name: Completions, path: "/v1/completions",
		text: `,"prompt":`, ids: `,"prompt":`, least: "min_tokens", ignoreEOS: true,
	},
	{
		name: Chat, path: "/v1/chat/completions",
		text: `,"messages":[{"role":"user","content":`, after: "}]", messages: "messages", least: "min_tokens", ignoreEOS: true,
	},
	{
		name: Responses, path: "/v1/responses", // of OpenAI
		text: `,"input":`, messages: "input", limit: "max_output_tokens", ignoreEOS: true, stores: true,
	},
	{
		name: Messages, path: "/v1/messages", headers: []Header{{"anthropic-version", "2023-06-01"}},
		text: `,"messages":[{"role":"user","content":`, after: "}]", messages: "messages", limit: maxTokens,
	},
	{
		name: Generate, path: "/generate", // of SGLang
		text: `,"text":`, ids: `,"input_ids":`, nested: "sampling_params", limit: "max_new_tokens", least: "min_new_tokens", ignoreEOS: true,
	},
}

// layout returns the parts of a body that all requests have in common.
func (a *api) layout(m members) layout {
	if a.nested != "" {
		return a.nestedLayout(m)
	}
	caps := m.caps
	own := func(key string) bool {
		return slices.ContainsFunc(m.extra, func(m member) bool { return m.key == key })
	}
	l := layout{
		head:  jsonscan.AppendString([]byte(`{"model":`), m.model),
		limit: fmt.Appendf(nil, `,%q:`, cmp.Or(a.limit, caps.limit)),
		tail:  []byte(`,"stream":true`),
	}
	if caps.minTokens && !own(a.least) {
		l.least = fmt.Appendf(nil, `,%q:`, a.least)
	}
	if a.hasChoices() && caps.streamOptions {
		l.tail = append(l.tail, `,"stream_options":{"include_usage":true`...)
		if caps.chunkTokens&inUsage != 0 {
			l.tail = append(l.tail, `,"continuous_usage_stats":true`...)
		}
		l.tail = append(l.tail, '}')
	}
	if a.hasChoices() && caps.chunkTokens&inTokenIDs != 0 && !own("return_token_ids") {
		l.tail = append(l.tail, `,"return_token_ids":true`...)
	}
	if a.stores && !own("store") {
		l.tail = append(l.tail, `,"store":false`...)
	}
	if caps.ignoreEOS && !own("ignore_eos") {
		l.tail = append(l.tail, `,"ignore_eos":true`...)
	}
	more := slices.SortedFunc(slices.Values(slices.Concat(m.extra, m.sampling)), func(a, b member) int { return strings.Compare(a.key, b.key) })
	l.tail = append(appendMembers(l.tail, more...), '}')
	return l
}

// nestedLayout is layout for an API that has the lengths and sampling in a member.
func (a *api) nestedLayout(m members) layout {
	l := layout{head: []byte(`{"stream":true`), limit: fmt.Appendf(nil, `,%q:{%q:`, a.nested, a.limit)}
	if m.caps.minTokens {
		l.least = fmt.Appendf(nil, `,%q:`, a.least)
	}
	if m.caps.ignoreEOS {
		l.tail = append(l.tail, `,"ignore_eos":true`...)
	}
	l.tail = append(appendMembers(l.tail, m.sampling...), '}')
	l.tail = append(appendMembers(l.tail, m.extra...), '}')
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

// appendMembers appends members, each after a comma.
func appendMembers(b []byte, list ...member) []byte {
	for _, m := range list {
		b = append(append(jsonscan.AppendString(append(b, ','), m.key), ':'), m.value...)
	}
	return b
}
