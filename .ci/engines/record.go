package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// Folders of the fixtures.
const (
	responses = "replay/openai/testdata/engines"
	metrics   = "replay/evidence/testdata/engines"
)

// recording is a request whose response becomes a fixture.
type recording struct {
	name   string
	method string
	path   string
	body   object
	only   string // the engine that it is for, or all
	has    string // what the response must contain
}

// fixture returns the path of a recorded file: in the repository, if it is to be
// updated, or else below the folder of the runs.
func (s *session) fixture(path ...string) (string, error) {
	name := filepath.Join(path...)
	if !s.tools.fixtures {
		name = filepath.Join(s.tools.out, "fixtures", name)
	}
	return name, os.MkdirAll(filepath.Dir(name), 0o755)
}

// recordResponses writes the raw bytes of the server's responses.
func recordResponses(s *session) error {
	if err := s.recordAll(recordings(s)); err != nil {
		return err
	}
	_, text, err := s.server.get(context.Background(), "/metrics")
	if err != nil {
		return err
	}
	path, err := s.fixture(metrics, s.engine.name+".txt")
	if err != nil {
		return err
	}
	s.law("metrics page", "parses", fmt.Sprint(len(text), " bytes"), len(text) > 0)
	return os.WriteFile(path, withoutBuckets(text), 0o644)
}

func (s *session) recordAll(all []recording) error {
	for _, r := range all {
		if r.only != "" && r.only != s.engine.name {
			continue
		}
		if err := s.record(r); err != nil {
			return err
		}
	}
	return nil
}

// recordLocked writes responses of the server that requires a key and, if it is
// vLLM, sends several tokens a chunk and takes apart reasoning.
func recordLocked(s *session) error {
	key := s.server.opts.key
	s.server.opts.key = "sk-wrong"
	err := s.record(recording{"error-key", "POST", "/v1/completions", streamed(s, object{"prompt": "baba"}), "", "401"})
	s.server.opts.key = key
	if err != nil {
		return err
	}
	user := []object{{"role": "user", "content": "baba babe babi"}}
	return s.recordAll([]recording{
		{"tokens-by-five", "POST", "/v1/completions", streamed(s, object{"prompt": []int{1000, 1001, 1002}, "return_token_ids": true, "max_tokens": 18}), "vllm", "token_ids"},
		{"chat-reasoning", "POST", "/v1/chat/completions", streamed(s, object{"messages": user, "max_tokens": 12}), "vllm", `"reasoning`},
	})
}

// streamed returns a request for a stream with further members.
func streamed(s *session, more object) object {
	body := object{"model": s.server.opts.model.name, "stream": true, "stream_options": object{"include_usage": true}, "max_tokens": 8, "ignore_eos": true, "seed": 1}
	maps.Copy(body, more)
	return body
}

// record writes the response to one request.
func (s *session) record(r recording) error {
	body := ""
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return err
		}
		body = string(text)
	}
	raw, err := s.server.exchange(r.method, r.path, body)
	if err != nil {
		return fmt.Errorf("recording %s: %w", r.name, err)
	}
	path, err := s.fixture(responses, s.engine.name, r.name+".txt")
	if err != nil {
		return err
	}
	status, _, _ := strings.Cut(string(raw), "\r\n")
	s.law(r.name, "has "+r.has, fmt.Sprintf("%s, %d bytes", status, len(raw)), strings.Contains(string(raw), r.has))
	return os.WriteFile(path, raw, 0o644)
}

func recordings(s *session) []recording {
	ids := make([]int, 100)
	for i := range ids {
		ids[i] = 1000 + 7*i
	}
	name := s.server.opts.model.name
	user := []object{{"role": "user", "content": "baba babe babi"}}
	tool := []object{{"type": "function", "function": object{"name": "tide", "parameters": object{
		"type": "object", "properties": object{"high": object{"type": "boolean"}}, "required": []string{"high"}}}}}
	const post, completions, chats = "POST", "/v1/completions", "/v1/chat/completions"
	return []recording{
		{"models", "GET", "/v1/models", nil, "", `"tiny"`},
		{"tokens", post, completions, streamed(s, object{"prompt": ids}), "", `"prompt_tokens":100`},
		{"tokens-cached", post, completions, streamed(s, object{"prompt": ids}), "", `"cached_tokens":9`},
		{"token-ids", post, completions, streamed(s, object{"prompt": ids, "return_token_ids": true, "stream_options": object{"include_usage": true, "continuous_usage_stats": true}}), "", "usage"},
		{"chat", post, chats, streamed(s, object{"messages": user}), "", `"role":"assistant"`},
		{"chat-tool", post, chats, streamed(s, object{"messages": user, "tools": tool, "tool_choice": "required", "max_tokens": 60, "ignore_eos": false}), "vllm", "tool_calls"},
		{"chat-reasoning", post, chats, streamed(s, object{"messages": user, "ignore_eos": false, "max_tokens": 40,
			"grammar": `root ::= "<think>baba babe</think>" "babi babo bebu"`}), "llamacpp", "reasoning_content"},
		{"error-model", post, completions, object{"model": "nosuch", "prompt": "baba", "stream": true}, "vllm", "nosuch"},
		{"error-context", post, completions, streamed(s, object{"prompt": make([]int, maxModelLen+1)}), "", "context"},
		{"error-token", post, completions, streamed(s, object{"prompt": []int{1, 5_000_000}}), "", "400"},
		{"error-json", post, completions, object{"model": name, "prompt": object{}, "stream": true}, "", "error"},
		{"responses", post, "/v1/responses", object{"model": name, "input": "baba babe babi", "stream": true, "max_output_tokens": 8}, "", "response.completed"},
		{"messages", post, "/v1/messages", object{"model": name, "messages": user, "stream": true, "max_tokens": 8}, "", "message_stop"},
	}
}

// withoutBuckets drops what no client reads and makes a page long.
func withoutBuckets(page []byte) (kept []byte) {
	for line := range bytes.Lines(page) {
		if !bytes.Contains(line, []byte("_bucket{")) && !bytes.HasPrefix(line, []byte("python_")) && !bytes.Contains(line, []byte(" python_")) {
			kept = append(kept, line...)
		}
	}
	return kept
}
