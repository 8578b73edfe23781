package server_test

import (
	"strings"
	"testing"

	"moontide/replay/sim/server"
)

// A server refuses what it is configured to, with the words of the servers that
// clients have to adapt to, and answers every other request.
func TestRefuse(t *testing.T) {
	const chat, text, stream = `{"messages":[{"role":"user","content":"a b"}]`, `{"prompt":"a b"`, `,"stream":true`
	for _, tt := range []struct {
		name, path, body string
		without          string // the same request without it
		status           int
		message          string
	}{
		{"max_tokens", chatPath, chat + `,"max_tokens":5}`, chat + `,"max_completion_tokens":5}`, 400,
			"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."},
		{"max_completion_tokens", chatPath, chat + `,"max_completion_tokens":5}`, chat + `,"max_tokens":5}`, 400,
			"Unsupported parameter: 'max_completion_tokens' is not supported with this model. Use 'max_tokens' instead."},
		{"stream_options", completionPath, text + stream + `,"stream_options":{"include_usage":true}}`, text + stream + `}`, 400,
			"Unsupported parameter: 'stream_options' is not supported with this model."},
		{"continuous_usage_stats", completionPath, text + stream + `,"stream_options":{"include_usage":true,"continuous_usage_stats":false}}`,
			text + stream + `,"stream_options":{"include_usage":true}}`, 400, "Unknown parameter: 'stream_options.continuous_usage_stats'."},
		{"return_token_ids", chatPath, chat + `,"return_token_ids":true}`, chat + `}`, 400, "Unknown parameter: 'return_token_ids'."},
		{"ignore_eos", completionPath, text + `,"ignore_eos":true}`, text + `}`, 400, "Unknown parameter: 'ignore_eos'."},
		{"min_tokens", completionPath, text + `,"min_tokens":3}`, text + `}`, 400, "Unknown parameter: 'min_tokens'."},
		{"nvext", chatPath, chat + `,"nvext":{"ignore_eos":true}}`, chat + `}`, 400, "Unknown parameter: 'nvext'."},
		{"token_ids", completionPath, `{"prompt":[1,2]}`, `{"prompt":["a b"]}`, 400,
			"Invalid type for 'prompt': expected a string, but got an array instead."},
		{"token_ids", completionPath, `{"prompt":[ [1,2] ]}`, `{"prompt":"a b"}`, 400,
			"Invalid type for 'prompt': expected a string, but got an array instead."},
		{"completions", completionPath, text + `}`, "", 404,
			"This is a chat model and not supported in the v1/completions endpoint. Did you mean to use v1/chat/completions?"},
		{"token_ids", generatePath, `{"input_ids":[1,2]}`, `{"text":"a b"}`, 400, "Invalid type for 'input_ids': expected a string, but got an array instead."},
		{"min_tokens", generatePath, `{"text":"a","sampling_params":{"min_new_tokens":3}}`, `{"text":"a"}`, 400, "Unknown parameter: 'min_new_tokens'."},
		{"ignore_eos", messagesPath, `{"max_tokens":5,"ignore_eos":true,` + chat[1:] + `}`, `{"max_tokens":5,` + chat[1:] + `}`, 400,
			"Unknown parameter: 'ignore_eos'."},
		{"responses", responsesPath, `{"input":"a"}`, "", 404, `"/v1/responses" is not served`},
		{"messages", messagesPath, `{"max_tokens":5,` + chat[1:] + `}`, "", 404, `"/v1/messages" is not served`},
	} {
		refusing, lenient := start(t, server.Config{Refuse: []string{tt.name}}), start(t, server.Config{})
		status, text := refusing.do("POST", tt.path, tt.body)
		if r := parsed[refusal](t, []byte(text)); status != tt.status || r.Error.Message != tt.message {
			t.Errorf("%s: status %d, %q; want %d, %q", tt.name, status, r.Error.Message, tt.status, tt.message)
		}
		if status, body := lenient.do("POST", tt.path, tt.body); status != 200 {
			t.Errorf("%s: refused by a server that refuses nothing: %s", tt.name, body)
		}
		path, other := tt.path, tt.without
		if other == "" {
			path, other = chatPath, chat+"}"
		}
		if status, body := refusing.do("POST", path, other); status != 200 {
			t.Errorf("%s: a request without it: %s", tt.name, body)
		}
	}
}

func TestParseRefuse(t *testing.T) {
	if names, err := server.ParseRefuse("max_tokens, token_ids"); err != nil || strings.Join(names, " ") != "max_tokens token_ids" {
		t.Errorf("%q, %v", names, err)
	}
	if names, err := server.ParseRefuse(""); err != nil || names != nil {
		t.Errorf("%q, %v", names, err)
	}
	// Only OpenAI's own APIs have two names for the maximum.
	s := start(t, server.Config{Refuse: []string{"max_tokens", "max_completion_tokens"}})
	if status, body := s.do("POST", messagesPath, `{"messages":[{"role":"user","content":"a"}],"max_tokens":5}`); status != 200 {
		t.Errorf("messages: %s", body)
	}
	for _, list := range []string{"max_tokens,nothing", ",", "max-tokens"} {
		if _, err := server.ParseRefuse(list); err == nil || !strings.Contains(err.Error(), "cannot be refused: use max_tokens, ") {
			t.Errorf("%q: %v", list, err)
		}
		if _, err := server.New(server.Config{Refuse: strings.Split(list, ",")}); err == nil {
			t.Errorf("%q is accepted", list)
		}
	}
}
