package server_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// dialect is how the tests speak an API.
type dialect struct {
	path string
	// body is a request with the members that limit the answer: %d is the number
	// of tokens, %s are further members.
	body string
	// separates is whether it tells reasoning from visible text.
	separates bool
}

// said is what a client learns from an answer.
type said struct {
	Reasoning, Text       string
	Input, Cached, Output int
	Finish                string // why it ended, in the words of the API
	Error                 string
}

// parsed decodes JSON, which has to be valid.
func parsed[T any](t *testing.T, data []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return v
}

var dialects = []dialect{
	{chatPath, `{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"how are you"}],"max_tokens":%d%s}`, true},
	{completionPath, `{"prompt":"be brief how are you","max_tokens":%d%s}`, false},
	{responsesPath, `{"instructions":"be brief","input":"how are you","max_output_tokens":%d%s}`, true},
	{messagesPath, `{"system":"be brief","messages":[{"role":"user","content":"how are you"}],"max_tokens":%d%s}`, true},
	{generatePath, `{"text":"be brief how are you","sampling_params":{"ignore_eos":true,"max_new_tokens":%d}%s}`, false},
}

func (d dialect) request(tokens int, members string) string {
	return fmt.Sprintf(d.body, tokens, members)
}

// ask sends a request and reads the answer, streamed or not. It returns the events.
func (d dialect) ask(s *testServer, body string) (got said, stream string) {
	s.t.Helper()
	status, text := s.do("POST", d.path, body)
	if status != 200 {
		s.t.Fatalf("%s %s: status %d: %s", d.path, body, status, text)
	}
	if strings.HasPrefix(text, "{") {
		got.read(s.t, "", []byte(text))
		return got, ""
	}
	for _, e := range eventsOf(s.t, text) {
		if e.data != "[DONE]" {
			got.read(s.t, e.name, []byte(e.data))
		}
	}
	return got, text
}

type event struct{ name, data string }

// eventsOf splits a stream into events, each a name, perhaps, and one line of data.
func eventsOf(t *testing.T, stream string) (events []event) {
	t.Helper()
	whole, ok := strings.CutSuffix(stream, "\n\n")
	if !ok {
		t.Fatalf("the stream ends within an event: %q", stream)
	}
	for text := range strings.SplitSeq(whole, "\n\n") {
		m := regexp.MustCompile(`^(?:event: ([a-z_.]+)\n)?data: (.*)$`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("not an event: %q", text)
		}
		events = append(events, event{m[1], m[2]})
	}
	return events
}

// read takes a whole answer, or an event of one, of any API.
func (s *said) read(t *testing.T, name string, data []byte) {
	t.Helper()
	v := parsed[map[string]any](t, data)
	if name != "" && v["type"] != name {
		t.Errorf("event %q has the type %q", name, v["type"])
	}
	if _, ok := v["output_ids"]; ok { // with the text so far
		s.Text = ""
	}
	switch path := strings.Split(name, "."); path[len(path)-1] {
	case "created", "in_progress", "added", "done", "message_start": // nothing new
	case "completed", "incomplete":
		delete(v["response"].(map[string]any), "output")
		fallthrough
	default:
		s.walk("", v)
	}
}

// walk takes the members that tell something.
func (s *said) walk(key string, v any) {
	list, _ := v.([]any)
	for _, element := range list {
		s.walk(key, element)
	}
	object, _ := v.(map[string]any)
	number := func(key string) int {
		n, _ := object[key].(float64)
		return int(n)
	}
	kind, _ := object["type"].(string)
	if key == "finish_reason" && kind != "" {
		s.Finish = kind
	}
	for k, value := range object {
		text, _ := value.(string)
		switch k {
		case "thinking", "reasoning_content":
			s.Reasoning += text
		case "text", "content", "delta":
			if strings.Contains(kind, "reasoning_text") {
				s.Reasoning += text
			} else {
				s.Text += text
			}
		case "status":
			if object["object"] == "response" {
				s.Finish = text
			}
		case "finish_reason", "stop_reason":
			s.Finish += text
		case "message":
			s.Error += text
		case "prompt_tokens", "input_tokens":
			s.Input = number(k) + number("cache_creation_input_tokens") + number("cache_read_input_tokens")
		case "completion_tokens", "output_tokens":
			s.Output = number(k)
		case "cached_tokens", "cache_read_input_tokens":
			s.Cached = number(k)
		}
		s.walk(k, value)
	}
}
