package openai

import (
	"fmt"
	"strings"
	"testing"

	"moontide/replay"
	"moontide/trace"
)

// event is an event with a name.
func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

// typed is an event whose name is its type.
func typed(data string) string {
	_, rest, _ := strings.Cut(data, `"type":"`)
	name, _, _ := strings.Cut(rest, `"`)
	return event(name, data)
}

// Answers of 12 prompt tokens, 8 of them cached, and 3 tokens, in the forms of the
// APIs. The first token of those that can is reasoning.
var (
	responsesHead = typed(`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"output":[],"usage":null}}`) +
		typed(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","role":"assistant","content":[]}}`) +
		typed(`{"type":"response.content_part.added","item_id":"msg_1","part":{"type":"output_text","text":"","annotations":[]}}`)
	responsesReasoning = typed(`{"type":"response.reasoning_text.delta","item_id":"rs_1","output_index":0,"content_index":0,"delta":"hm"}`)
	responsesToken     = typed(`{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":" tide","logprobs":[]}`)
	responsesEnd       = typed(`{"type":"response.output_text.done","item_id":"msg_1","text":" tide tide"}`) +
		typed(`{"type":"response.incomplete","response":{"id":"resp_1","status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":12,"input_tokens_details":{"cached_tokens":8},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":15}}}`)

	messagesHead = typed(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":1,"cache_read_input_tokens":8,"output_tokens":1}}}`) +
		typed(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`) +
		typed(`{"type":"ping"}`)
	messagesReasoning = typed(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`)
	messagesToken     = typed(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" tide"}}`)
	messagesEnd       = typed(`{"type":"content_block_stop","index":1}`) +
		typed(`{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":3}}`) +
		typed(`{"type":"message_stop"}`)
)

func generateToken(n int, finish string) string {
	return fmt.Sprintf(`data: {"text":%q,"output_ids":[%d],"meta_info":{"id":"1","finish_reason":%s,"prompt_tokens":12,"weight_version":"default","completion_tokens":%d,"cached_tokens":8}}`+"\n\n",
		strings.Repeat(" tide", n), n, finish, n)
}

// streamsOf are answers by API.
var streamsOf = map[string]struct {
	stream    string
	reasoning bool
}{
	Responses: {responsesHead + responsesReasoning + responsesToken + responsesToken + responsesEnd, true},
	Messages:  {messagesHead + messagesReasoning + messagesToken + messagesToken + messagesEnd, true},
	Generate:  {generateToken(1, "null") + generateToken(2, "null") + generateToken(3, `{"type":"length","length":3}`) + theEnd, false},
}

func of(endpoint string) func(*Config) { return func(cfg *Config) { cfg.Endpoint = endpoint } }

// An answer has the same tokens, counts and end in each API.
func TestAnswersOfAPIs(t *testing.T) {
	t.Parallel()
	for endpoint, answer := range streamsOf {
		o := send(t, client(t, serve(t, says(streamed+inChunk(answer.stream)+lastChunk)).url, of(endpoint)))
		wantOK(t, o, 3)
		want := replay.Counts{Input: trace.Some(12), Output: trace.Some(3), Cached: trace.Some(8)}
		if endpoint == Responses { // the only one that counts them
			want.Reasoning = trace.Some(1)
		}
		if o.Counts != want || o.MissingDone {
			t.Errorf("%s: counts %+v, want %+v; no end: %v", endpoint, o.Counts, want, o.MissingDone)
		}
		if o.FirstVisible.IsZero() || o.FirstVisible.Before(o.First) {
			t.Errorf("%s: first token %v, first visible %v", endpoint, o.First, o.FirstVisible)
		}
	}
}

// A broken answer has the class and the message of its error.
func TestErrorsOfAPIs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		endpoint, stream string
		class            replay.Class
		text             string
	}{
		"responses failed":    {Responses, responsesToken + typed(`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"out of memory"}}}`), replay.Server, "out of memory"},
		"responses cancelled": {Responses, responsesToken + typed(`{"type":"response.cancelled","response":{"status":"cancelled"}}`), replay.Server, "cancelled"},
		"responses error":     {Responses, typed(`{"type":"error","code":"rate_limit","message":"slow down"}`), replay.Server, "slow down"},
		"responses error too": {Responses, "data: " + `{"type":"error","code":"rate_limit","message":"slow down"}` + "\n\n", replay.Server, "slow down"},
		"responses cut":       {Responses, responsesHead + responsesToken, replay.Truncated, "truncated"},
		"responses empty":     {Responses, responsesHead + responsesEnd, replay.Empty, "no tokens"},
		"responses garbage":   {Responses, "data: {\"type\":}\n\n", replay.Protocol, "not one of the API"},
		"messages error":      {Messages, messagesHead + typed(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), replay.Server, "Overloaded"},
		"messages cut":        {Messages, messagesHead + messagesToken, replay.Truncated, "truncated"},
		"messages garbage":    {Messages, "data: x\n\n", replay.Protocol, "not one of the API"},
		"generate error":      {Generate, `data: {"error":{"message":"no memory"}}` + "\n\n" + theEnd, replay.Server, "no memory"},
		"generate aborted":    {Generate, generateToken(1, `{"type":"abort","message":"killed"}`) + theEnd, replay.Server, "killed"},
		"generate cut":        {Generate, generateToken(1, "null"), replay.Truncated, "truncated"},
	} {
		o := send(t, client(t, serve(t, says(streamed+inChunk(tc.stream)+lastChunk)).url, of(tc.endpoint)))
		if o.Class != tc.class || !strings.Contains(o.Error, tc.text) {
			t.Errorf("%s: %q %q, want %q %q", name, o.Class, o.Error, tc.class, tc.text)
		}
	}
}

func TestBodiesOfAPIs(t *testing.T) {
	t.Parallel()
	r := trace.Request{InputLength: 2, OutputLength: 5}
	chat := trace.Request{InputLength: 2, OutputLength: 5, Extra: extra(`{"messages":[{"role":"user","content":"a"}]}`).Extra}
	sampled := func(cfg *Config) { cfg.Temperature = trace.Some(0.5); cfg.ExtraBody = `{"x":1}` }
	for name, tc := range map[string]struct {
		endpoint, form string
		row            trace.Request
		edit           func(*Config)
		path, want     string
	}{
		"responses":          {Responses, Words, r, nil, "/v1/responses", `{"model":"m","input":"notes mail","max_output_tokens":5,"stream":true,"store":false,"ignore_eos":true}`},
		"responses, chat":    {Responses, Words, chat, sampled, "/v1/responses", `{"model":"m","input":[{"role":"user","content":"a"}],"max_output_tokens":5,"stream":true,"store":false,"ignore_eos":true,"temperature":0.5,"x":1}`},
		"messages":           {Messages, Words, r, sampled, "/v1/messages", `{"model":"m","messages":[{"role":"user","content":"notes mail"}],"max_tokens":5,"stream":true,"temperature":0.5,"x":1}`},
		"generate":           {Generate, Tokens, r, nil, "/generate", `{"stream":true,"input_ids":[17762,15497],"sampling_params":{"max_new_tokens":5,"min_new_tokens":5,"ignore_eos":true}}`},
		"generate, sampling": {Generate, Words, r, sampled, "/generate", `{"stream":true,"text":"notes mail","sampling_params":{"max_new_tokens":5,"min_new_tokens":5,"ignore_eos":true,"temperature":0.5},"x":1}`},
	} {
		c := client(t, "http://localhost", of(tc.endpoint), func(cfg *Config) {
			cfg.Prompt = tc.form
			if tc.edit != nil {
				tc.edit(cfg)
			}
		})
		made := prepare(t, c, tc.row)
		if string(made.body) != tc.want {
			t.Errorf("%s: body\n%s, want\n%s", name, made.body, tc.want)
		}
		if !strings.HasSuffix(c.Target(), tc.path) || !strings.Contains(string(made.head), "POST "+tc.path+" ") {
			t.Errorf("%s: %s, head %q", name, c.Target(), made.head)
		}
		if version := strings.Contains(strings.ToLower(string(made.head)), "anthropic-version: 2023-06-01"); version != (tc.endpoint == Messages) {
			t.Errorf("%s: head %q", name, made.head)
		}
	}
}
