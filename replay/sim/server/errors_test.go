package server

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"

	"moontide/replay/sim/engine"
	"moontide/replay/weblog"
	"moontide/trace/tracetest"
)

// refused sends a request and returns the status and the error object.
func (s *testServer) refused(method, path, body string) (status int, text string) {
	s.t.Helper()
	status, text = s.do(method, path, body)
	if allow := s.open(method, path, body).Header.Get("Allow"); status == http.StatusMethodNotAllowed && !strings.Contains(text, "takes "+allow+",") {
		s.t.Errorf("%s %s: Allow %q", method, path, allow)
	}
	if status/100 != 4 || !json.Valid([]byte(text)) || !strings.Contains(text, `"message":"`) || len(text) > 400 {
		s.t.Errorf("%s %s %.100s: status %d, %s", method, path, body, status, text)
	}
	return status, text
}

// What is refused, and in which words. The golden file has the requests, each with the
// answer below it.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, over(engine.Config{MaxModelLen: 20}))
	file, err := os.ReadFile("testdata/refusals.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(string(file)) {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		method, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		path, body, _ := strings.Cut(rest, " ")
		status, answer := s.refused(method, path, body)
		fmt.Fprintf(&got, "%s  %d %s\n", line, status, answer)
	}
	tracetest.Golden(t, "testdata/refusals.txt", got.String())
}

func TestHarmlessParameters(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	a := s.ask(chatPath, `{"messages":[{"role":"user","content":"a, [b {c"}],"n":1,"best_of":1,"tools":[],"logprobs":false,
		"top_logprobs":0,"echo":false,"suffix":"","response_format":{"type":"text"},"stream_options":null,"model":null,
		"seed":1,"temperature":0,"top_p":1,"user":"u","tool_choice":"auto","metadata":{"a":[1,{"b":null}]},"Max_Tokens":3}`)
	if a.Input != 3 || a.Output == 3 {
		t.Errorf("%+v", a)
	}
}

func TestRefusedBodies(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	for _, body := range []string{
		``, ` `, `{`, `[]`, `5`, `"x"`, `{"prompt":"a"} x`, `{"prompt":"a",}`, `{"prompt":'a'}`, "{\"prompt\":\"a\nb\"}",
		`{"prompt":"a","x":tru}`, `{"prompt":[1,2}`, strings.Repeat("[", 100_000), `{"x":` + strings.Repeat(`{"x":`, 100_000),
		`{"prompt":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "\x00\xff",
	} {
		if status, text := s.refused("POST", completionPath, body); !strings.Contains(text, "the body is not a JSON object") {
			t.Errorf("%.40q: status %d, %s", body, status, text)
		}
	}
}

func TestLargeRequests(t *testing.T) {
	s := startTCP(t, Config{})
	large := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: sim\r\nContent-Length: %d\r\n\r\n", completionPath, 65<<20)
	if status := s.dial(large).header(); status != "HTTP/1.1 413 Request Entity Too Large" {
		t.Errorf("a body of 65 MiB: %s", status)
	}
	if status, _ := s.refused("GET", "/health?"+strings.Repeat("x", 20_000), ""); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a request line of 20 kB: status %d, want 431", status)
	}
}

// A server refuses the configured parameters and answers every other request.
func TestRefuse(t *testing.T) {
	t.Parallel()
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
		{"completions", completionPath, text + `}`, 404, `\"/v1/completions\" is not served`},
	} {
		refusing, lenient := start(t, Config{Refuse: []string{tt.name}}), start(t, Config{})
		if status, text := refusing.refused("POST", tt.path, tt.body); status != tt.status || !strings.Contains(text, tt.message) {
			t.Errorf("%s: status %d, %s; want %d, %q", tt.name, status, text, tt.status, tt.message)
		}
		if status, body := lenient.do("POST", tt.path, tt.body); status != 200 {
			t.Errorf("%s: refused by a server that refuses nothing: %s", tt.name, body)
		}
		if status, body := refusing.do("POST", chatPath, chat+"}"); status != 200 {
			t.Errorf("%s: a request without it: %s", tt.name, body)
		}
	}
}

func TestBadConfigurations(t *testing.T) {
	for want, bad := range map[string][]Config{
		"cannot be refused: use max_tokens, ":         {{Refuse: []string{"nothing"}}, {Refuse: []string{""}}, {Refuse: []string{"ignore_eos", "max-tokens"}}},
		"time scale must be from 0.001 to 1000, got ": {{TimeScale: -1}, {TimeScale: 1e-4}, {TimeScale: 1e4}, {TimeScale: math.Inf(1)}, {TimeScale: math.NaN()}},
		"must not be negative, got -1":                {{ReasoningTokens: -1}},
	} {
		for _, cfg := range bad {
			if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v", cfg, err)
			}
		}
	}
}

// A panic of a handler costs its connection, not the server, and says nothing of the request.
func TestHandlerPanics(t *testing.T) {
	said := make(chan string, 9)
	weblog.Divert(func(text string) { said <- text })
	s := start(t, Config{Encode: func(dst []uint32, text string) ([]uint32, error) {
		if strings.Contains(text, "secret") {
			panic(text)
		}
		return append(dst, 1), nil
	}})
	status, text := s.do("POST", "/v1/completions", `{"model":"sim","prompt":"secret"}`)
	if status != 500 || strings.Contains(text, "secret") {
		t.Errorf("status %d: %s", status, text)
	}
	if text := <-said; !strings.Contains(text, "panicked") || strings.Contains(text, "secret") {
		t.Error(text)
	}
	if status, text := s.do("POST", "/v1/completions", `{"model":"sim","prompt":"a","max_tokens":1}`); status != 200 {
		t.Errorf("then status %d: %s", status, text)
	}
}
