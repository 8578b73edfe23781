package server_test

import (
	"strings"
	"testing"

	"moontide/replay/sim/server"
)

// A server refuses what it is configured to, and answers every other request.
func TestRefuse(t *testing.T) {
	const chat, text = `{"messages":[{"role":"user","content":"a b"}]`, `{"prompt":"a b"`
	for _, tt := range []struct {
		name, path, body string
		status           int
		message          string
	}{
		{"max_tokens", chatPath, chat + `,"max_tokens":5}`, 400, "Unknown parameter: 'max_tokens'."},
		{"continuous_usage_stats", completionPath, text + `,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":false}}`, 400, "Unknown parameter: 'continuous_usage_stats'."},
		{"ignore_eos", generatePath, `{"text":"a","sampling_params":{"ignore_eos":true}}`, 400, "Unknown parameter: 'ignore_eos'."},
		{"token_ids", completionPath, `{"prompt":[ [1,2] ]}`, 400, "prompt must be a string, not an array of token ids"},
		{"token_ids", generatePath, `{"input_ids":[1,2]}`, 400, "input_ids must be a string, not an array of token ids"},
		{"completions", completionPath, text + `}`, 404, `"/v1/completions" is not served`},
	} {
		refusing, lenient := start(t, server.Config{Refuse: []string{tt.name}}), start(t, server.Config{})
		status, body := refusing.do("POST", tt.path, tt.body)
		if r := parsed[refusal](t, []byte(body)); status != tt.status || r.Error.Message != tt.message {
			t.Errorf("%s: status %d, %q; want %d, %q", tt.name, status, r.Error.Message, tt.status, tt.message)
		}
		if status, body := lenient.do("POST", tt.path, tt.body); status != 200 {
			t.Errorf("%s: refused by a server that refuses nothing: %s", tt.name, body)
		}
		if status, body := refusing.do("POST", chatPath, chat+"}"); status != 200 {
			t.Errorf("%s: a request without it: %s", tt.name, body)
		}
	}
	for _, name := range []string{"nothing", "", "max-tokens"} {
		if _, err := server.New(server.Config{Refuse: []string{name}}); err == nil || !strings.Contains(err.Error(), "cannot be refused: use max_tokens, ") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
