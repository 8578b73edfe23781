package server_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"moontide/replay/sim/engine"
	"moontide/replay/sim/server"
)

// refusal is the error object of a response.
type refusal struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	} `json:"error"`
}

func (r refusal) param() string { return *cmp.Or(r.Error.Param, new(string)) }
func (r refusal) code() string  { return *cmp.Or(r.Error.Code, new(string)) }

// refused sends a request and returns the status and the error object.
func (s *testServer) refused(method, path, body string) (int, refusal) {
	s.t.Helper()
	status, text := s.do(method, path, body)
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	var r refusal
	if err := d.Decode(&r); err != nil {
		s.t.Fatalf("%s %s %.100s: status %d, no error object: %v: %s", method, path, body, status, err, text)
	}
	for _, member := range []string{`"message":"`, `"type":"`, `"param":`, `"code":`} {
		if !strings.Contains(text, member) {
			s.t.Errorf("%s: no %s in %s", body, member, text)
		}
	}
	if r.Error.Type != "invalid_request_error" || r.Error.Message == "" || len(r.Error.Message) > 300 || strings.Contains(r.Error.Message, "\n") {
		s.t.Errorf("%.100s: %s", body, text)
	}
	return status, r
}

func TestRefusedParameters(t *testing.T) {
	s := start(t, over(engine.Config{MaxModelLen: 20}))
	const unsupported, tooLong = "unsupported_value", "context_length_exceeded"
	const chat, text = `"messages":[{"role":"user","content":"a b"}]`, `"prompt":"a b"`
	for _, tt := range []struct{ path, members, param, code string }{
		{chatPath, chat + `,"n":2`, "n", unsupported},
		{chatPath, chat + `,"tools":[{"type":"function"}]`, "tools", unsupported},
		{chatPath, chat + `,"logprobs":true`, "logprobs", unsupported},
		{chatPath, chat + `,"audio":{}`, "audio", unsupported},
		{chatPath, chat + `,"response_format":{"type":"json_object"}`, "response_format", unsupported},
		{chatPath, chat + `,"response_format":1`, "response_format", ""},
		{completionPath, text + `,"best_of":2`, "best_of", unsupported},
		{completionPath, text + `,"logprobs":0`, "logprobs", unsupported},
		{completionPath, text + `,"echo":true`, "echo", unsupported},

		{completionPath, text + `,"max_tokens":0`, "max_tokens", ""},
		{completionPath, text + `,"max_tokens":"5"`, "max_tokens", ""},
		{completionPath, text + `,"max_tokens":5,"max_completion_tokens":0`, "max_completion_tokens", ""},
		{completionPath, text + `,"max_tokens":19`, "prompt", tooLong},
		{completionPath, text + `,"max_tokens":9223372036854775807`, "prompt", tooLong},
		{completionPath, `"prompt":"` + strings.Repeat("a ", 20) + `"`, "prompt", tooLong},
		{completionPath, text + `,"max_tokens":5,"min_tokens":6`, "min_tokens", ""},
		{completionPath, text + `,"min_tokens":-1`, "min_tokens", ""},
		{completionPath, text + `,"ignore_eos":1`, "ignore_eos", ""},
		{chatPath, chat + `,"tool_choice":"required"`, "tool_choice", unsupported},
		{chatPath, chat + `,"modalities":["text","audio"]`, "modalities", unsupported},
		{completionPath, text + `,"stream":"yes"`, "stream", ""},
		{completionPath, text + `,"stream_options":{}`, "stream_options", ""},
		{completionPath, text + `,"stream":true,"stream_options":[]`, "stream_options", ""},
		{completionPath, text + `,"stream":true,"stream_options":{"continuous_usage_stats":1}`, "stream_options", ""},

		{completionPath, `"x":1`, "prompt", ""},
		{completionPath, `"prompt":null`, "prompt", ""},
		{completionPath, `"prompt":""`, "prompt", ""},
		{completionPath, `"prompt":" \n\t"`, "prompt", ""},
		{completionPath, `"prompt":[]`, "prompt", ""},
		{completionPath, `"prompt":[[]]`, "prompt", ""},
		{completionPath, `"prompt":["a","b"]`, "prompt", ""},
		{completionPath, `"prompt":[[1],[2]]`, "prompt", ""},
		{completionPath, `"prompt":[["a"]]`, "prompt", ""},
		{completionPath, `"prompt":["a",1]`, "prompt", ""},
		{completionPath, `"prompt":5`, "prompt", ""},

		{chatPath, `"prompt":"a"`, "messages", ""},
		{chatPath, `"messages":[]`, "messages", ""},
		{chatPath, `"messages":{}`, "messages", ""},
		{chatPath, `"messages":[null]`, "messages", ""},
		{chatPath, `"messages":[{"content":"a"}]`, "messages[0].role", ""},
		{chatPath, `"messages":[{"role":"user","content":"a"},{"role":"king","content":"a"}]`, "messages[1].role", ""},
		{chatPath, `"messages":[{"role":"user"}]`, "messages[0].content", ""},
		{chatPath, `"messages":[{"role":"user","content":1}]`, "messages[0].content", ""},
		{chatPath, `"messages":[{"role":"user","content":["a"]}]`, "messages[0].content", ""},
		{chatPath, `"messages":[{"role":"user","content":[{"type":"text"}]}]`, "messages[0].content", ""},
		{chatPath, `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]`, "messages[0].content", unsupported},
		{chatPath, `"messages":[{"role":"assistant","tool_calls":[{}]}]`, "messages[0].tool_calls", unsupported},
		{chatPath, `"messages":[{"role":"assistant"}]`, "messages", ""},
	} {
		status, r := s.refused("POST", tt.path, "{"+tt.members+"}")
		if status != http.StatusBadRequest || r.param() != tt.param || r.code() != tt.code {
			t.Errorf("%.100s: status %d, %+v (param %q, code %q); want 400, param %q, code %q",
				tt.members, status, r.Error, r.param(), r.code(), tt.param, tt.code)
		}
	}
}

func TestHarmlessParameters(t *testing.T) {
	s := start(t, server.Config{})
	a := s.ask(chatPath, `{"messages":[{"role":"user","content":"a, [b {c"}],"n":1,"best_of":1,"tools":[],"logprobs":false,
		"top_logprobs":0,"echo":false,"suffix":"","response_format":{"type":"text"},"stream_options":null,"model":null,
		"seed":1,"temperature":0,"top_p":1,"user":"u","tool_choice":"auto","metadata":{"a":[1,{"b":null}]},"Max_Tokens":3}`)
	if a.Input != 3 || a.Output == 3 {
		t.Errorf("%+v", a)
	}
}

func TestRefusedBodies(t *testing.T) {
	s := start(t, server.Config{})
	for _, body := range []string{
		``, ` `, `{`, `[]`, `5`, `"x"`, `{"prompt":"a"} x`, `{"prompt":"a",}`, `{"prompt":'a'}`, "{\"prompt\":\"a\nb\"}",
		`{"prompt":"a","x":tru}`, `{"prompt":[1,2}`, strings.Repeat("[", 100_000), `{"x":` + strings.Repeat(`{"x":`, 100_000),
		`{"prompt":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "\x00\xff",
	} {
		if status, r := s.refused("POST", completionPath, body); status != http.StatusBadRequest || r.code() != "" {
			t.Errorf("%.40q: status %d, %+v", body, status, r.Error)
		}
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	s := start(t, server.Config{})
	for _, path := range []string{"/", "/v1", "/v1/embeddings", "/v1/chat/completions/x", "/v1/models/x", "/" + strings.Repeat("x", 1000)} {
		if status, _ := s.refused("POST", path, ""); status != http.StatusNotFound {
			t.Errorf("%.40s: status %d, want 404", path, status)
		}
	}
	for path, allowed := range map[string]string{chatPath: "POST", completionPath: "POST", "/v1/models": "GET", "/health": "GET", "/metrics": "GET", "/version": "GET"} {
		other := map[string]string{"POST": "GET", "GET": "POST"}[allowed]
		status, _ := s.refused(other, path, "{}")
		if got := s.open(other, path, "").Header.Get("Allow"); status != http.StatusMethodNotAllowed || got != allowed {
			t.Errorf("%s %s: status %d, Allow %q", other, path, status, got)
		}
	}
}

func TestLargeRequests(t *testing.T) {
	s := startTCP(t, server.Config{})
	large := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: sim\r\nContent-Length: %d\r\n\r\n", completionPath, 65<<20)
	if status := s.dial(large).header(); status != "HTTP/1.1 413 Request Entity Too Large" {
		t.Errorf("a body of 65 MiB: %s", status)
	}
	if status, _ := s.refused("GET", "/health?"+strings.Repeat("x", 20_000), ""); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a request line of 20 kB: status %d, want 431", status)
	}
}

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
