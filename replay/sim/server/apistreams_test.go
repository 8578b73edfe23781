package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/replay/sim/server"
)

var (
	changing      = regexp.MustCompile(`[0-9a-f]{32}|"created(_at)?":[0-9]{10}\b`)
	generatedText = regexp.MustCompile(`"(?: [a-z]+)+"`)
	generatedIDs  = regexp.MustCompile(`"output_ids":\[([0-9,]+)\]`)
)

// constant replaces the parts of an answer that differ between runs: ids by X and
// instants by 0.
func constant(text string) string {
	return changing.ReplaceAllStringFunc(text, func(m string) string {
		if instant, _, ok := strings.Cut(m, ":"); ok {
			return instant + ":0"
		}
		return "X"
	})
}

// stream returns an answer without the parts that differ between runs, in which
// generated texts are their number of words and generated token ids their number.
func (s *testServer) stream(path, body string) string {
	s.t.Helper()
	status, text := s.do("POST", path, body)
	if status != 200 {
		s.t.Fatalf("%s: status %d: %s", path, status, text)
	}
	text = generatedText.ReplaceAllStringFunc(constant(text), func(m string) string { return fmt.Sprintf(`"%d"`, strings.Count(m, " ")) })
	return generatedIDs.ReplaceAllStringFunc(text, func(m string) string {
		return fmt.Sprintf(`"output_ids":[%d]`, strings.Count(m, ",")+1)
	})
}

func (s *testServer) streams(path, body, want string) {
	s.t.Helper()
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n")+"\n\n", s.stream(path, body)); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// Chats and completions, streamed and whole.
func TestChoices(t *testing.T) {
	s := start(t, server.Config{Model: `a "model"`})
	chunk := func(choices, rest string) string {
		return `data: {"id":"chatcmpl-X","object":"chat.completion.chunk","created":0,"model":"a \"model\"","choices":[` + choices + `]` + rest + "}\n\n"
	}
	token := chunk(`{"index":0,"delta":{"content":"1"},"logprobs":null,"finish_reason":null}`, "")
	s.streams(chatPath, `{"stream":true,"max_tokens":3,"ignore_eos":true,"stream_options":{"include_usage":true},"temperature":0.5,
		"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"how are you"}]}`,
		chunk(`{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`, "")+token+token+
			chunk(`{"index":0,"delta":{"content":"1"},"logprobs":null,"finish_reason":"length","stop_reason":null}`, "")+
			chunk("", `,"usage":{"prompt_tokens":5,"total_tokens":8,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}`)+"data: [DONE]")
	s.streams(completionPath, `{"prompt":[1,2,3],"stream":true,"max_tokens":2}`, `
data: {"id":"cmpl-X","object":"text_completion","created":0,"model":"a \"model\"","choices":[{"index":0,"text":"1","logprobs":null,"finish_reason":null}]}

data: {"id":"cmpl-X","object":"text_completion","created":0,"model":"a \"model\"","choices":[{"index":0,"text":"1","logprobs":null,"finish_reason":"length","stop_reason":null}]}

data: [DONE]`)
	for _, tt := range []struct{ path, body, want string }{
		{chatPath, `{"messages":[{"role":"user","content":"hi there"}],"max_tokens":2}`, `{"id":"chatcmpl-X","object":"chat.completion","created":0,"model":"a \"model\"","choices":[` +
			`{"index":0,"message":{"role":"assistant","content":"2"},"logprobs":null,"finish_reason":"length","stop_reason":null}],`},
		{completionPath, `{"prompt":"hi there","max_tokens":2}`, `{"id":"cmpl-X","object":"text_completion","created":0,"model":"a \"model\"","choices":[` +
			`{"index":0,"text":"2","logprobs":null,"finish_reason":"length","stop_reason":null}],`},
	} {
		const usage = `"usage":{"prompt_tokens":2,"total_tokens":4,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`
		if got, want := s.stream(tt.path, tt.body), tt.want+usage; got != want {
			t.Errorf("%s:\n got %s\nwant %s", tt.path, got, want)
		}
	}
	res := s.open("POST", chatPath, `{"stream":true,"max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`)
	if kind, cache := res.Header.Get("Content-Type"), res.Header.Get("Cache-Control"); kind != "text/event-stream; charset=utf-8" || cache != "no-cache" {
		t.Errorf("content type %q, cache control %q", kind, cache)
	}
}

const askedOfResponses = `{"model":"sim","instructions":"be brief","input":"how are you","max_output_tokens":3,"stream":true}`

// responseObject is a response with a status and what depends on it.
func responseObject(status, details, output, usage string) string {
	return `{"id":"resp_X","object":"response","created_at":0,"status":"` + status + `","background":false,"error":null,` +
		`"incomplete_details":` + details + `,"instructions":null,"max_output_tokens":3,"model":"sim","output":[` + output + `],` +
		`"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":null,"summary":null},"store":false,"temperature":1.0,` +
		`"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled","usage":` + usage + `,"user":null,"metadata":{}}`
}

func TestStreamedResponse(t *testing.T) {
	begun := responseObject("in_progress", "null", "", "null")
	ended := responseObject("incomplete", `{"reason":"max_output_tokens"}`,
		`{"id":"msg_X","type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"3"}]}`,
		`{"input_tokens":5,"input_tokens_details":{"cached_tokens":0},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":8}`)
	start(t, server.Config{}).streams(responsesPath, askedOfResponses, `
event: response.created
data: {"type":"response.created","response":`+begun+`,"sequence_number":0}

event: response.in_progress
data: {"type":"response.in_progress","response":`+begun+`,"sequence_number":1}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":0,"item":{"id":"msg_X","type":"message","role":"assistant","status":"in_progress","content":[]},"sequence_number":2}

event: response.content_part.added
data: {"type":"response.content_part.added","item_id":"msg_X","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""},"sequence_number":3}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_X","output_index":0,"content_index":0,"delta":"1","logprobs":[],"sequence_number":4}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_X","output_index":0,"content_index":0,"delta":"1","logprobs":[],"sequence_number":5}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_X","output_index":0,"content_index":0,"delta":"1","logprobs":[],"sequence_number":6}

event: response.output_text.done
data: {"type":"response.output_text.done","item_id":"msg_X","output_index":0,"content_index":0,"text":"3","logprobs":[],"sequence_number":7}

event: response.content_part.done
data: {"type":"response.content_part.done","item_id":"msg_X","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":"3"},"sequence_number":8}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"id":"msg_X","type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"3"}]},"sequence_number":9}

event: response.incomplete
data: {"type":"response.incomplete","response":`+ended+`,"sequence_number":10}`)
}

const askedOfMessages = `{"model":"sim","system":"be brief","messages":[{"role":"user","content":"how are you"}],"max_tokens":3,"stream":true}`

func TestStreamedMessage(t *testing.T) {
	start(t, server.Config{}).streams(messagesPath, askedOfMessages, `
event: message_start
data: {"type":"message_start","message":{"id":"msg_X","type":"message","role":"assistant","model":"sim","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}

event: ping
data: {"type":"ping"}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"1"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"1"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"1"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":3}}

event: message_stop
data: {"type":"message_stop"}`)
}

func TestStreamedGenerate(t *testing.T) {
	s := start(t, server.Config{ReasoningTokens: 1})
	for _, prompt := range []string{`"text":"how are you"`, `"input_ids":[7,8,9]`} {
		s.streams(generatePath, `{`+prompt+`,"sampling_params":{"max_new_tokens":2},"stream":true}`, `
data: {"text":"1","output_ids":[1],"meta_info":{"id":"X","finish_reason":null,"prompt_tokens":3,"completion_tokens":1,"cached_tokens":0}}

data: {"text":"2","output_ids":[1],"meta_info":{"id":"X","finish_reason":{"type":"length","length":2},"prompt_tokens":3,"completion_tokens":2,"cached_tokens":0}}

data: [DONE]`)
	}
}
