package openai

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"moontide/replay"
	"moontide/replay/openai/http1"
	"moontide/replay/openai/poll"
	"moontide/trace"
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
		"data: " + eventsSeen[2] + "\n\n",
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
	for _, text := range eventsSeen {
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
			if text, ok := choice.Text.(string); ok && text != "" && !info.hasToken && bytes.Contains(data, []byte(`"text"`)) {
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
	u := info.usage
	return fmt.Sprintf("token %t, visible %t, finished %t, %q %q, %d of %d, %d cached", info.hasToken, info.visible, info.finished, p.text, p.reasoning, u.output.Value, u.input.Value,
		u.cached.Value)
}

// Unusual events are read as far as they can be, or are failures.
func TestUnusualEvents(t *testing.T) {
	t.Parallel()
	const nothing = `token false, visible false, finished false, "" "", `
	for data, want := range map[string]string{
		`{"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"usage":{"completion_tokens":5},"timings":{"prompt_n":1,"prompt_ms":-0.5e+3,"cache_n":3,"x":[]}}`:    `token false, visible false, finished true, "" "", 5 of 0, 3 cached`,
		` { "choices" : [ { "text" : [ ] , "text2" : true } ] , "x" : false } `:                                                                                          nothing + "0 of 0, 0 cached",
		`{"Choices":[{"text":"a"}],"\u0063hoices":[{"text":"a"}]}`:                                                                                                       nothing + "0 of 0, 0 cached",
		`{"choices":[{"text":"C:\\","delta":{"reasoning":"\\\""}}]}`:                                                                                                     `token true, visible true, finished false, "C:\\\\" "\\\\\\\"", 0 of 0, 0 cached`,
		`{"choices":[{"finish_reason":["stop"]}]}`:                                                                                                                       `token false, visible false, finished true, "" "", 0 of 0, 0 cached`,
		`{"usage":{"prompt_tokens":7,"completion_tokens":5,"cached_tokens":1,"prompt_cache_hit_tokens":2,"prompt_tokens_details":{"audio_tokens":0,"cached_tokens":3}}}`: nothing + "5 of 7, 3 cached",
		`{"usage":{"prompt_tokens":-1,"completion_tokens":null}}`:                                                                                                        nothing + "0 of 0, 0 cached",
		`{"usage":{"prompt_tokens":1e2,"completion_tokens":12345678901234567890}}`:                                                                                       nothing + "2147483647 of 100, 0 cached",
		`{"usage":{"prompt_tokens":7.0,"completion_tokens":5.99,"prompt_tokens_details":{"cached_tokens":4.5}}}`:                                                         nothing + "5 of 7, 4 cached",
		`{"usage":{"prompt_tokens":2147483647.999999,"completion_tokens":0.9999999999999}}`:                                                                              nothing + "0 of 2147483647, 0 cached",
		`{"usage":{"input_tokens":3,"cache_read_input_tokens":4,"cache_creation_input_tokens":1,"output_tokens":2}}`:                                                     nothing + "2 of 8, 4 cached",
		`{"usage":{"prompt_tokens":8,"cache_read_input_tokens":4}}`:                                                                                                      nothing + "0 of 8, 4 cached",
		`{"error":null,"choices":null,"usage":null,"timings":"fast"}`:                                                                                                    nothing + "0 of 0, 0 cached",
		`{"error":{"message":"out of memory"}}`:                                                                                                                          "server",
		`{"choices":[{"text":"a","finish_reason":"ABORT"}],"error":null}`:                                                                                                "server",
		`{"usage":[]}`: "protocol", `{"choices":{}}`: "protocol", `[]`: "protocol", `"hello"`: "protocol", `{"choices":[{"text":"a"}]}}`: "protocol",
		`{"usage":{"completion_tokens":"5"}}`: "protocol", `{"x":01}`: "protocol", `{"x":1.}`: "protocol", `{"x":"\`: "protocol",
	} {
		if got := readsAs(data); got != want {
			t.Errorf("%s: %s, want %s", data, got, want)
		}
	}
}

// eventsSeen are events as engines send them.
var eventsSeen = []string{
	// vLLM
	`{"id":"cmpl-6a3f","object":"text_completion","created":1732175000,"model":"m","choices":[{"index":0,"text":" tide","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}`,
	`{"id":"chatcmpl-6a3f","object":"chat.completion.chunk","created":1732175000,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null}`,
	`{"id":"chatcmpl-6a3f","object":"chat.completion.chunk","created":1732175000,"model":"m","choices":[{"index":0,"delta":{"content":" \"tide\"\n"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`,
	`{"id":"chatcmpl-6a3f","choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"length","stop_reason":null}]}`,
	`{"id":"chatcmpl-6a3f","choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"abort","stop_reason":null}],"error":{}}`,
	`{"id":"chatcmpl-6a3f","choices":[],"usage":{"prompt_tokens":7,"total_tokens":12,"completion_tokens":5,"prompt_tokens_details":null}}`,
	// SGLang
	`{"id":"36b4","object":"chat.completion.chunk","created":1732175000,"model":"m","choices":[{"index":0,"delta":{"role":null,"content":null,"reasoning_content":"hm","tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null}`,
	`{"id":"36b4","choices":[{"index":0,"delta":{"role":null,"content":null,"reasoning_content":null,"tool_calls":null},"finish_reason":"length","matched_stop":null}],"usage":null}`,
	// TensorRT-LLM, Dynamo
	`{"id":"cmpl-1","object":"text_completion","created":1732175000,"model":"m","choices":[{"index":0,"text":"tide","token_ids":[1,2],"logprobs":null,"context_logits":null,"finish_reason":null,"stop_reason":null,"disaggregated_params":null}],"usage":null,"prompt_token_ids":null}`,
	`{"id":"d","choices":[{"index":0,"delta":{"content":"tide","function_call":null,"tool_calls":null,"role":"assistant","refusal":null,"reasoning_content":null},"finish_reason":null,"logprobs":null}],"created":1732175000,"model":"m","service_tier":null,"system_fingerprint":null,"object":"chat.completion.chunk","usage":null,"nvext":{"worker_id":{"prefill":1}}}`,
	// llama.cpp
	`{"choices":[{"finish_reason":null,"index":0,"delta":{"content":" tide"}}],"created":1732175000,"id":"c","model":"m","system_fingerprint":"b6000","object":"chat.completion.chunk"}`,
	`{"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"usage":{"completion_tokens":5},"timings":{"prompt_n":1,"prompt_ms":-0.5e+3,"x":[]}}`,
	// others
	`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\": 1}"}}]}},{"text":"\\"}]}`, `{"error":{"message":"out of memory"}}`,
	`{"id":"floats","choices":[{"text":"a","token_ids":[1.0,2]}],"usage":{"prompt_tokens":7.0,"completion_tokens":5.00,"prompt_tokens_details":{"cached_tokens":4.5}}}`,
	`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`, `{"type":"response.output_text.delta","delta":"a"}`,
	`{"text":"a","output_ids":[1],"meta_info":{"finish_reason":{"type":"abort","message":"m"},"completion_tokens":1}}`,
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
