package openai

import (
	"encoding/json"
	"slices"

	"moontide/trace/jsonscan"
)

// api is one of the HTTP APIs that servers offer: how its requests are written and
// the events of its answers are read.
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
	// read reads an event, or the body of an answer that is not streamed. It adds what
	// is new in the answer to p, unless that is nil.
	read func(data []byte, p *pieces) (chunkInfo, error)
}

// raw is JSON that is not decoded.
type raw = json.RawMessage

// hasChoices reports whether the API is one of those that answer with choices, whose
// servers differ in the members they take.
func (a *api) hasChoices() bool { return a.limit == "" }

// apis lists the APIs; the first is the default.
var apis = []*api{&completionsAPI, &chatAPI, &responsesAPI, &messagesAPI, &generateAPI}

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
