package openai

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"moontide/replay"
	"moontide/replay/openai/http1"
	"moontide/replay/openai/poll"
	"moontide/trace"
	"moontide/trace/tracetest"
)

// fedAnswer is an answer with the response that feeds it.
type fedAnswer struct {
	http1.Response
	answer
	over bool
}

func newFed() *fedAnswer {
	a := &fedAnswer{}
	a.Sink = &a.answer
	return a
}

// fed is an answer that arrived in pieces, a second each, and then ended.
func fed(pieces [][]byte, end error) *fedAnswer {
	a := newFed()
	at := poll.Arrival{Time: time.Unix(1e9, 0), Kernel: true}
	for _, piece := range pieces {
		at.Time = at.Add(time.Second)
		// What arrived is gone after the call.
		passing := slices.Clone(piece)
		if a.Feed(passing, at) {
			a.over = true
			return a
		}
		for i := range passing {
			passing[i] = '"'
		}
	}
	at.Time = at.Add(time.Second)
	a.Response.End(end, at)
	a.over = true
	return a
}

// verdict is everything about an answer except its instants.
func (a *fedAnswer) verdict() string {
	class, err := a.result(nil)
	return fmt.Sprintf("%q %v, %d gaps, first %t, status %d, counts %v, reusable %t, text %q",
		class, err, a.stream.gaps.n, !a.stream.first.IsZero(), a.status, a.stream.counts, a.Reusable, a.text)
}

// cutAt cuts b into pieces of the given sizes, repeated as needed.
func cutAt(b, sizes []byte) (pieces [][]byte) {
	for i := 0; len(b) > 0; i++ {
		size := 1
		if len(sizes) > 0 {
			size += int(sizes[i%len(sizes)])
		}
		size = min(size, len(b))
		pieces, b = append(pieces, b[:size]), b[size:]
	}
	return pieces
}

// serverAnswers are valid and invalid answers, the seeds of fuzzing.
func serverAnswers() (all []string) {
	for _, body := range []string{
		complete, role + complete, tide + finish, tide + tide[:20], tide + "data: {{\n\n", ": ping\n\n" + tide + "data:\n\n" + theEnd,
		strings.ReplaceAll(complete, "\n", "\r\n"), strings.ReplaceAll(complete, "\n", "\r"),
		tide + `data: {"error":{"message":"out of memory"}}` + "\n\n", tide + "error: {\"message\":\"no\"}\n\n" + theEnd,
		tide + finish + "event: error\r\n: no\r\n: room\n\n" + theEnd, tide + "event: error\r: no\r\r", tide + "event: error\n: no\n" + theEnd, tide + "data: [DONE]", "data: {\"choices\":[\ndata: {\"text\":\"a\"}]}\n\n" + theEnd,
	} {
		all = append(all,
			streamed+inChunk(body)+lastChunk,
			streamed+inChunk(body[:len(body)/2])+inChunk(body[len(body)/2:])+"0;x=y\r\nA: b\r\n\r\n",
			untilEnd+body,
			answerOf("200 OK", "text/event-stream", body),
			streamed+inChunk(body)+"zz\r\n",
			answerOf("429 Slow Down", "application/json", `{"error":"busy"}`)+body,
		)
	}
	return append(all, "HTTP/1.1 100 Continue\r\n\r\n"+streamed+inChunk(complete)+lastChunk, "220 mail\r\n", "HTTP/1.1 204 No\r\n\r\n")
}

// An answer does not depend on where the network cuts it.
func FuzzAnswer(f *testing.F) {
	for i, text := range serverAnswers() {
		f.Add([]byte(text), []byte{byte(i), 0, 7}, i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, text, sizes []byte, reset bool) {
		end := io.EOF
		if reset {
			end = os.ErrDeadlineExceeded
		}
		want := fed([][]byte{text}, end)
		got := fed(cutAt(text, sizes), end)
		// Of what is over, the rest may not have been fed.
		if !want.over || !got.over {
			t.Fatal("not over")
		}
		if got, want := agree(got), agree(want); got != want {
			t.Errorf("%q in pieces of %v is\n%s, whole it is\n%s", text, sizes, got, want)
		}
	})
}

// agree is the part of the verdict that must not depend on the cuts. What follows
// the end of an answer is seen only if it arrived with it, and the text of a head
// error quotes only what had arrived.
func agree(a *fedAnswer) string {
	a.Reusable = false
	var malformed *http1.HeadError
	if errors.As(a.err, &malformed) {
		a.err = errors.New("malformed")
	}
	return a.verdict()
}

// Instants are those of the pieces that completed the events, and gaps are between
// consecutive token chunks, however large.
func TestInstants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		gaps := rapid.SliceOfN(rapid.Int64Range(0, int64(7*time.Hour)), 0, 50).Draw(t, "gaps")
		a := newFed()
		at := poll.Arrival{Time: time.Unix(1e9, 0), Kernel: true}
		start := at.Time
		a.Feed([]byte(streamed), at)
		a.Feed([]byte(inChunk(role+tide)), at)
		var want []time.Duration
		for _, gap := range gaps {
			at.Time = at.Add(time.Duration(gap))
			want = append(want, time.Duration(gap))
			a.Feed([]byte(inChunk(tide)), at)
		}
		if got := listOf[time.Duration](a.stream.gaps); !slices.Equal(got, want) {
			t.Fatalf("gaps %v, want %v", got, want)
		}
		if !a.stream.first.Equal(start) || !a.stream.last.Equal(at.Time) || a.stream.clientStamps {
			t.Fatalf("first %v, last %v, client stamps %v", a.stream.first, a.stream.last, a.stream.clientStamps)
		}
	})
}

// Network segments may overtake each other; tokens cannot.
func TestTimeDoesNotGoBack(t *testing.T) {
	t.Parallel()
	s := stream{}
	start := time.Now()
	for _, at := range []int{5, 3, 9, 9, 8, 10} {
		s.tokenChunk(poll.Arrival{Time: start.Add(time.Duration(at)), Kernel: true})
	}
	if want := []time.Duration{0, 4, 0, 0, 1}; !slices.Equal(listOf[time.Duration](s.gaps), want) || s.last.Sub(s.first) != 5 {
		t.Errorf("gaps %v, %v in all", listOf[time.Duration](s.gaps), s.last.Sub(s.first))
	}
}

// An event of any server costs no allocation, and a stream keeps no text.
func TestNoAllocationForAnEvent(t *testing.T) {
	for _, token := range []string{
		tide,
		"data: " + eventsSeen(t)[2] + "\n\n",
		`data: {"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1000.0,"completion_tokens":100}}` + "\n\n",
		responsesToken,
		messagesToken,
		generateToken(1, "null"),
	} {
		a := newFed()
		at := poll.Arrival{Time: time.Now(), Kernel: true}
		a.Feed([]byte(streamed), at)
		event := []byte(inChunk(token))
		a.stream.gaps.bytes = make([]byte, 0, 1<<10)
		allocs := testing.AllocsPerRun(100, func() { a.stream.counts = replay.Counts{}; a.Feed(event, at) })
		if allocs > 0 || a.stream.gaps.n != 100 || cap(a.text) > 0 {
			t.Errorf("%s: %v allocations, %d gaps, %d bytes kept", token, allocs, a.stream.gaps.n, cap(a.text))
		}
	}
}

// FuzzReadEvent reads damaged events of all APIs. What is JSON is read as a decoder
// would: no token and no count of one is lost.
func FuzzReadEvent(f *testing.F) {
	for _, text := range eventsSeen(f) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want struct {
			Choices []struct{ Text, Content any }
			Usage   struct {
				Output any `json:"completion_tokens"`
			}
		}
		info, err := readEvent(data, new(pieces))
		if stdjson.Unmarshal(data, &want) != nil || err != nil {
			return
		}
		for _, choice := range want.Choices {
			if text, ok := choice.Text.(string); ok && text != "" && !info.hasToken && bytes.Contains(data, []byte(`"text"`)) && bytes.Contains(data, []byte(`"choices"`)) {
				t.Errorf("%q has a token", data)
			}
		}
		key := []byte(`"completion_tokens":`)
		if n, ok := want.Usage.Output.(float64); ok && n >= 0 && bytes.Count(data, key) == 1 && bytes.Count(data, []byte(`"usage":`)) == 1 && info.usage.output != trace.Some(int32(min(n, maxCount))) && !bytes.Contains(data, []byte("output_tokens")) && !bytes.Contains(data, []byte("message_start")) {
			t.Errorf("%q has %v tokens, read %+v", data, n, info.usage.output)
		}
	})
}

// readsAs is what an event says.
func readsAs(data string) string {
	var p pieces
	info, err := readEvent([]byte(data), &p)
	if err != nil {
		return string(err.(answerError).class)
	}
	said := ""
	for _, is := range []struct {
		name string
		is   bool
	}{{"token", info.hasToken}, {"visible", info.visible}, {"finished", info.finished}, {"done", info.done}} {
		if is.is {
			said += is.name + ", "
		}
	}
	u := info.usage
	for i, count := range []tokenCount{u.input, u.output, u.cached, u.reasoning} {
		if count.Set {
			said += fmt.Sprintf("%s %d, ", []string{"input", "output", "cached", "reasoning"}[i], count.Value)
		}
	}
	return fmt.Sprintf("%stext %q, reasoning %q", said, p.text, p.reasoning)
}

// Events are read leniently or fail. The golden file shows the result below each event.
func TestEvents(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, event := range eventsSeen(t) {
		fmt.Fprintf(&got, "%s\n  %s\n", event, readsAs(event))
	}
	tracetest.Golden(t, "testdata/events.txt", got.String())
}

// eventsSeen are the events in testdata/events.txt: events of real engines first, then
// unusual ones.
func eventsSeen(tb testing.TB) (events []string) {
	tb.Helper()
	file, err := os.ReadFile("testdata/events.txt")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "  ") {
			events = append(events, strings.TrimSuffix(line, "\n"))
		}
	}
	return events
}

// Only the beginning of a long error text is kept.
func TestLongErrorIsCut(t *testing.T) {
	t.Parallel()
	text := []byte("HTTP/1.1 500 Oh\r\n\r\n" + strings.Repeat("x", 4*maxErrorText))
	for _, size := range []byte{255, 99} {
		if a := fed(cutAt(text, []byte{size}), io.EOF); len(a.text) != maxErrorText || a.Reusable {
			t.Errorf("%d bytes are kept, whole %t", len(a.text), a.Reusable)
		}
	}
	if a := fed([][]byte{text}, io.EOF); len(a.text) != maxErrorText {
		t.Errorf("%d bytes are kept", len(a.text))
	}
}

// The class of an answer depends on what came before its end and on how it ended.
func TestEndsOfAnswers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[error]replay.Class{
		"":                               {io.EOF: replay.Connect, os.ErrDeadlineExceeded: replay.Connect},
		streamed + inChunk(tide):         {io.EOF: replay.Truncated, os.ErrDeadlineExceeded: replay.Truncated},
		streamed + inChunk(complete):     {io.EOF: replay.OK, os.ErrDeadlineExceeded: replay.OK},
		untilEnd + tide + finish:         {io.EOF: replay.OK, os.ErrDeadlineExceeded: replay.Truncated},
		streamed + inChunk(tide+finish):  {io.EOF: replay.Truncated, os.ErrDeadlineExceeded: replay.Truncated},
		"HTTP/1.1 503 No\r\n\r\nbusy":    {io.EOF: replay.HTTPError, os.ErrDeadlineExceeded: replay.HTTPError},
		untilEnd + tide + "data: [DONE]": {io.EOF: replay.OK, os.ErrDeadlineExceeded: replay.OK},

		streamed + inChunk(tide+finish+tokens):      {io.EOF: replay.Truncated, os.ErrDeadlineExceeded: replay.OK, context.Canceled: replay.Truncated},
		streamed + inChunk(tide+tokens):             {os.ErrDeadlineExceeded: replay.Truncated},
		streamed + inChunk(tide+finish+tokens+tide): {os.ErrDeadlineExceeded: replay.Truncated},
		streamed + inChunk(finish+tokens):           {os.ErrDeadlineExceeded: replay.Empty},
	} {
		for end, class := range want {
			if got, err := fed([][]byte{[]byte(text)}, end).result(nil); got != class {
				t.Errorf("%q that ends with %v is %q (%v), want %q", text, end, got, err, class)
			}
		}
	}
}

// One stamp of the client makes all stamps of the answer the client's.
func TestClientStamps(t *testing.T) {
	t.Parallel()
	for _, kernel := range [][]bool{{true, true}, {false, true}, {true, false}} {
		s := stream{}
		for _, k := range kernel {
			s.tokenChunk(poll.Arrival{Time: time.Now(), Kernel: k})
		}
		if s.clientStamps != !(kernel[0] && kernel[1]) {
			t.Errorf("kernel %v: client stamps: %v", kernel, s.clientStamps)
		}
	}
}

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

// engineAnswers are what the client finds in the responses in testdata/engines,
// which .ci/engines/run recorded: the bytes of real engines.
var engineAnswers = map[string]string{
	"llamacpp/chat":           "ok: 8 chunks; input 5, output 8, cached 0",
	"llamacpp/chat-reasoning": "ok: 10 chunks; input 5, output 20, cached 0",
	"llamacpp/error-context":  "status 400: HTTP status 400: request (16385 tokens) exceeds the available context size (4096 tokens), try increasing it",
	"llamacpp/error-json":     `status 400: HTTP status 400: "prompt" elements must be a string, a list of tokens, a JSON object containing a prompt string, or a list of mixed strings & tokens.`,
	"llamacpp/error-key":      "status 401: HTTP status 401: Invalid API Key",
	"llamacpp/error-token":    "status 400: HTTP status 400: Prompt contains invalid tokens",
	"llamacpp/messages":       "ok: 8 chunks; input 5, output 8, cached 4",
	"llamacpp/responses":      "ok: 8 chunks; input 5, output 8, cached 4",
	"llamacpp/tokens":         "ok: 8 chunks; input 100, output 8, cached 0",
	"llamacpp/tokens-cached":  "ok: 8 chunks; input 100, output 8, cached 99",
	"llamacpp/token-ids":      "ok: 8 chunks; input 100, output 8, cached 99",
	"vllm/chat":               "ok: 8 chunks; input 5, output 8, cached 0",
	"vllm/chat-tool":          "ok: 4 chunks; input 5, output 49, cached 0",
	"vllm/chat-reasoning":     "ok: 4 chunks; input 5, output 12, cached 0",
	"vllm/error-context":      "status 400: HTTP status 400: This model's maximum context length is 16384 tokens. However, your prompt contains at least 16385 input tokens, which exceeds this limit even without any output tokens. Please reduce ...",
	"vllm/error-json":         "status 400: HTTP status 400: 4 validation errors:   {'type': 'list_type', 'loc': 'body.prompt', 'msg': 'Input should be a valid list', 'input': '<dict of 0 items>'}   {'type': 'list_type', 'loc': 'body.prompt', '...",
	"vllm/error-key":          "status 401: HTTP status 401: Unauthorized",
	"vllm/error-model":        "status 404: HTTP status 404: The model `nosuch` does not exist. Valid aliases: tiny.",
	"vllm/error-token":        "server 200: Token id 5000000 is out of vocabulary", // in the stream
	"vllm/messages":           "ok: 8 chunks; input 5, output 8, cached 0",
	"vllm/responses":          "ok: 8 chunks; input 5, output 8, cached 0",
	"vllm/tokens-by-five":     "ok: 5 chunks; input 3, output 18, cached 0; tokens of chunks [1 5 5 5 2]",
	"vllm/tokens":             "ok: 8 chunks; input 100, output 8, cached 0",
	"vllm/tokens-cached":      "ok: 8 chunks; input 100, output 8, cached 96",
	"vllm/token-ids":          "ok: 8 chunks; input 100, output 8, cached 96",
}

// However the network cuts a response, the client finds the same in it.
func TestEngineResponses(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/engines/*/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := strings.CutPrefix(strings.TrimSuffix(filepath.ToSlash(path), ".txt"), "testdata/engines/")
		kind, _, _ := strings.Cut(filepath.Base(name), "-")
		if kind == "models" {
			continue
		}
		found++
		for _, sizes := range [][]byte{{0}, {6}, {255, 255}} { // pieces of 1, 7 and 256 bytes
			if got := summaryOf(fed(cutAt(text, sizes), io.EOF)); got != engineAnswers[name] {
				t.Errorf("%s in pieces of %d bytes:\n got %s\nwant %s", name, int(sizes[0])+1, got, engineAnswers[name])
			}
		}
	}
	ids, err := os.ReadFile("testdata/engines/vllm/token-ids.txt")
	if err != nil {
		t.Fatal(err)
	}
	a := newFed()
	a.stream.kept = &kept{wantIDs: true}
	if a.Feed(ids, poll.Arrival{}); len(a.stream.kept.ids) != 8 {
		t.Errorf("%d ids of 8 tokens are kept", len(a.stream.kept.ids))
	}
	if found != len(engineAnswers) {
		t.Errorf("%d responses, %d expectations", found, len(engineAnswers))
	}
}

// Real lists of models have one, which needs no flag.
func TestEngineModels(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"llamacpp", "vllm"} {
		list, err := os.ReadFile(filepath.Join("testdata", "engines", engine, "models.txt"))
		if err != nil {
			t.Fatal(err)
		}
		c := client(t, serve(t, says(string(list)), wellBehaved).url, func(cfg *Config) { cfg.Model = "" })
		if _, err := c.Probe(context.Background()); err != nil || c.Model() != "tiny" {
			t.Errorf("%s: model %q, %v", engine, c.Model(), err)
		}
	}
}

// vLLM refuses token ids beyond its vocabulary within the stream: the probe draws
// smaller ones, and says so.
func TestEngineRefusesTokens(t *testing.T) {
	t.Parallel()
	refusal, err := os.ReadFile(filepath.Join("testdata", "engines", "vllm", "error-token.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for largest, want := range map[string]string{
		",29999]": "token ids are drawn from 937 to 7499",
		"]":       "Token id 5000000 is out of vocabulary",
	} {
		script := listing(listed("m"), func(p *peer, r *http.Request, body string) {
			if !strings.Contains(body, largest) {
				usual(p, r, body)
				return
			}
			p.say(string(refusal))
			p.Close()
		})
		notes, err := client(t, serve(t, script).url).Probe(context.Background())
		got := strings.Join(notes, "\n")
		if err != nil {
			got = err.Error()
		}
		var refused *RefusedError
		if !strings.Contains(got, want) || err != nil && (!errors.As(err, &refused) || refused.Remedy != UseSmallerIDs) {
			t.Errorf("ids that contain %q are refused: %s, want %q", largest, got, want)
		}
	}
}

// A list of models that needs a key is refused as requests are.
func TestEngineRefusesList(t *testing.T) {
	t.Parallel()
	refusal, err := os.ReadFile(filepath.Join("testdata", "engines", "llamacpp", "error-key.txt"))
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, serve(t, says(string(refusal))).url, func(cfg *Config) { cfg.Model = "" })
	_, err = c.Probe(context.Background())
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Remedy != UseKey || !strings.Contains(err.Error(), "models, as none is set: HTTP status 401: Invalid API Key") {
		t.Errorf("error %v", err)
	}
}

// summaryOf formats the fields that the client read from a response.
func summaryOf(a *fedAnswer) string {
	class, err := a.result(nil)
	if err != nil {
		return fmt.Sprintf("%s %d: %s", class, a.status, oneLine(err.Error()))
	}
	chunks := 0
	if !a.stream.first.IsZero() {
		chunks = a.stream.gaps.n + 1
	}
	c := a.stream.counts
	text := fmt.Sprintf("ok: %d chunks; input %d, output %d, cached %d", chunks, c.Input.Value, c.Output.Value, c.Cached.Value)
	if list := a.stream.tokens.list(); list != nil {
		text += fmt.Sprint("; tokens of chunks ", list)
	}
	return text
}
