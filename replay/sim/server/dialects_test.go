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
	// read reads an answer, or the data of the events of one.
	read func(t *testing.T, name string, data []byte, said *said)
}

// said is what a client learns from an answer.
type said struct {
	Reasoning, Text                string
	Input, Cached, Created, Output int
	Finish                         string // why it ended, in the words of the API
	Error                          string
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
	{chatPath, `{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"how are you"}],"max_tokens":%d%s}`, true, readChoices},
	{completionPath, `{"prompt":"be brief how are you","max_tokens":%d%s}`, false, readChoices},
	{responsesPath, `{"instructions":"be brief","input":"how are you","max_output_tokens":%d%s}`, true, readResponse},
	{messagesPath, `{"system":"be brief","messages":[{"role":"user","content":"how are you"}],"max_tokens":%d%s}`, true, readMessage},
	{generatePath, `{"text":"be brief how are you","sampling_params":{"ignore_eos":true,"max_new_tokens":%d}%s}`, false, readGenerated},
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
		d.read(s.t, "", []byte(text), &got)
		return got, ""
	}
	for _, e := range eventsOf(s.t, text) {
		if e.data != "[DONE]" {
			d.read(s.t, e.name, []byte(e.data), &got)
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

func readChoices(t *testing.T, _ string, data []byte, s *said) {
	type text struct {
		Content   string `json:"content"`
		Reasoning string `json:"reasoning_content"`
	}
	a := parsed[struct {
		Choices []struct {
			Message, Delta text
			Text           string
			Finish         string `json:"finish_reason"`
		}
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Details    struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
		Error struct{ Message string }
	}](t, data)
	for _, c := range a.Choices {
		s.Text += c.Message.Content + c.Delta.Content + c.Text
		s.Reasoning += c.Message.Reasoning + c.Delta.Reasoning
		s.Finish += c.Finish
	}
	s.Input, s.Output, s.Cached = s.Input+a.Usage.Prompt, s.Output+a.Usage.Completion, s.Cached+a.Usage.Details.Cached
	s.Error += a.Error.Message
}

func readResponse(t *testing.T, name string, data []byte, s *said) {
	type response struct {
		Status string
		Output []struct {
			Type    string
			Content []struct{ Type, Text string }
		}
		Usage struct {
			Input   int `json:"input_tokens"`
			Output  int `json:"output_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		}
	}
	var r response
	e := parsed[struct {
		Type, Delta, Message string
		Response             response
	}](t, data)
	if e.Type != name {
		t.Errorf("event %q has the type %q", name, e.Type)
	}
	switch name {
	case "":
		r = parsed[response](t, data)
		for _, item := range r.Output {
			for _, c := range item.Content {
				switch item.Type + " " + c.Type {
				case "reasoning reasoning_text":
					s.Reasoning += c.Text
				case "message output_text":
					s.Text += c.Text
				default:
					t.Errorf("%s in %s", c.Type, item.Type)
				}
			}
		}
	case "response.completed", "response.incomplete":
		r = e.Response
	case "response.output_text.delta":
		s.Text += e.Delta
	case "response.reasoning_text.delta":
		s.Reasoning += e.Delta
	case "error":
		s.Error = e.Message
	}
	s.Input, s.Output, s.Cached = s.Input+r.Usage.Input, s.Output+r.Usage.Output, s.Cached+r.Usage.Details.Cached
	s.Finish += r.Status
}

func readMessage(t *testing.T, name string, data []byte, s *said) {
	type counts struct {
		Input   int `json:"input_tokens"`
		Created int `json:"cache_creation_input_tokens"`
		Cached  int `json:"cache_read_input_tokens"`
		Output  int `json:"output_tokens"`
	}
	m := parsed[struct {
		Type    string
		Message struct{ Usage counts }
		Content []struct{ Type, Text, Thinking string }
		Delta   struct {
			Type, Text, Thinking string
			Reason               string `json:"stop_reason"`
		}
		Reason string `json:"stop_reason"`
		Usage  counts
		Error  struct{ Message string }
	}](t, data)
	if name != "" && m.Type != name {
		t.Errorf("event %q has the type %q", name, m.Type)
	}
	for _, c := range m.Content {
		s.Text, s.Reasoning = s.Text+c.Text, s.Reasoning+c.Thinking
	}
	s.Text, s.Reasoning = s.Text+m.Delta.Text, s.Reasoning+m.Delta.Thinking
	switch name {
	case "message_start":
		if u := m.Message.Usage; u.Output != 1 {
			t.Errorf("usage at the start: %+v", u)
		}
	case "", "message_delta":
		u := m.Usage
		s.Input, s.Cached, s.Created, s.Output = u.Input+u.Created+u.Cached, u.Cached, u.Created, u.Output
		s.Finish = m.Reason + m.Delta.Reason
	}
	s.Error += m.Error.Message
}

func readGenerated(t *testing.T, _ string, data []byte, s *said) {
	a := parsed[struct {
		Text string
		IDs  []int `json:"output_ids"`
		Meta struct {
			Finish *struct{ Type string } `json:"finish_reason"`
			Prompt int                    `json:"prompt_tokens"`
			Output int                    `json:"completion_tokens"`
			Cached int                    `json:"cached_tokens"`
		} `json:"meta_info"`
		Error struct{ Message string }
	}](t, data)
	s.Error += a.Error.Message
	if s.Error != "" {
		return
	}
	if !strings.HasPrefix(a.Text, s.Text) {
		t.Errorf("the text so far, %q, does not begin with the text before, %q", a.Text, s.Text)
	}
	if new := a.Meta.Output - s.Output; new != len(a.IDs) {
		t.Errorf("%d ids for %d tokens", len(a.IDs), new)
	}
	s.Text, s.Input, s.Output, s.Cached = a.Text, a.Meta.Prompt, a.Meta.Output, a.Meta.Cached
	if f := a.Meta.Finish; f != nil {
		s.Finish += f.Type
	}
}
