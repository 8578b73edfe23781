package openai

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/openai/http1"
	"moontide/replay/openai/poll"
	"moontide/trace"
	"moontide/trace/tracetest"
)

// answers are streams of n token chunks as servers send them.
var answers = []struct {
	name   string
	stream func(n int) []byte
}{
	{"completions", func(n int) []byte {
		return repeat(n, `{"id":"cmpl-6a3f0c9be5d14a4e8f2f6b1f2f0d4c11","object":"text_completion","created":1732175000,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"text":" tide","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}`)
	}},
	{"chat", func(n int) []byte {
		return repeat(n, `{"id":"chatcmpl-6a3f0c9be5d14a4e8f2f6b1f2f0d4c11","object":"chat.completion.chunk","created":1732175000,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"delta":{"content":" \"tide\"\n"},"logprobs":null,"finish_reason":null}]}`)
	}},
	{"usage", func(n int) []byte {
		return repeat(n, `{"id":"chatcmpl-6a3f0c9be5d14a4e8f2f6b1f2f0d4c11","object":"chat.completion.chunk","created":1732175000,"model":"m","choices":[{"index":0,"delta":{"content":" tide"},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":1000,"total_tokens":1100,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":512}}}`)
	}},
	{"floats", func(n int) []byte {
		return repeat(n, `{"id":"1","choices":[{"index":0,"delta":{"content":" tide"},"finish_reason":null}],"usage":{"prompt_tokens":1000.0,"completion_tokens":100.0}}`)
	}},
	{"responses", func(n int) []byte {
		return repeat(n, `{"type":"response.output_text.delta","sequence_number":17,"item_id":"msg_6a3f0c9be5d14a4e8f2f6b1f2f0d4c11","output_index":0,"content_index":0,"delta":" tide","logprobs":[]}`)
	}},
	{"messages", func(n int) []byte {
		return repeat(n, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" tide"}}`)
	}},
	{"generate", func(n int) []byte {
		var b []byte
		for i := range n {
			b = fmt.Appendf(b, `data: {"text":" tide tide tide","output_ids":[1,2,3],"meta_info":{"id":"6a3f0c9be5d14a4e8f2f6b1f2f0d4c11","finish_reason":null,"prompt_tokens":1000,"weight_version":"default","num_retractions":0,"completion_tokens":%d,"cached_tokens":512}}`+"\n\n", i+1)
		}
		return b
	}},
}

func repeat(n int, event string) []byte {
	return bytes.Repeat([]byte("data: "+event+"\n\n"), n)
}

// BenchmarkEvent is the cost of one event, from bytes in memory to the state of the
// answer, if many arrive at once.
func BenchmarkEvent(b *testing.B) { benchmarkEvents(b, func() *kept { return nil }) }

// BenchmarkKeptEvent is the cost of an event of an answer that later turns continue.
func BenchmarkKeptEvent(b *testing.B) { benchmarkEvents(b, func() *kept { return new(kept) }) }

func benchmarkEvents(b *testing.B, keeping func() *kept) {
	const n = 100
	for _, a := range answers {
		text := []byte(inChunk(string(a.stream(n))))
		b.Run(fmt.Sprintf("answer=%s", a.name), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text) / n))
			at := poll.Arrival{Time: time.Now()}
			to := &answer{stream: stream{kept: keeping()}}
			response := http1.Response{Sink: to}
			response.Feed([]byte(streamed), at)
			for done := 0; done < b.N; done += n {
				to.stream.gaps = numbers{to.stream.gaps.bytes[:0], 0}
				to.stream.counts = replay.Counts{}
				if k := to.stream.kept; k != nil {
					k.text, k.textPieces = k.text[:0], 0
				}
				if response.Feed(text, at) {
					b.Fatal(to.err)
				}
			}
			if to.stream.gaps.n < n-1 {
				b.Fatalf("%d gaps", to.stream.gaps.n)
			}
		})
	}
}

// BenchmarkPrepare is the preparation of a turn whose prompt has an answer of 1,000
// tokens, and of one that has none.
func BenchmarkPrepare(b *testing.B) {
	const isl, osl = 8000, 1000
	rows := []trace.Request{{SessionID: "s", InputLength: isl, OutputLength: osl, HashIDs: make([]uint64, 17)}, {SessionID: "s", InputLength: isl + osl + 500, OutputLength: osl, HashIDs: make([]uint64, 20)}}
	graph := tracetest.Graph(b, rows...)
	for _, answers := range AnswerModes() {
		for _, endpoint := range []string{Completions, Chat} {
			b.Run(fmt.Sprintf("answers=%s/endpoint=%s", answers, endpoint), func(b *testing.B) {
				c, err := New(Config{URL: "http://localhost", Model: "m", Endpoint: endpoint, Answers: answers, Graph: graph})
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				if _, err := c.Prepare(rows[0], 0); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if c.live != nil { // the answer ends, and its turn is prepared
						b.StopTimer()
						k := &kept{wantIDs: c.cfg.Prompt == Tokens}
						for i := range osl {
							info, _ := readEvent(fmt.Appendf(nil, `{"choices":[{"delta":{"content":" tide"},"token_ids":[%d]}]}`, 1000+i), k.next())
							k.take(&info)
						}
						b.StartTimer()
						c.live.book.Open(rows[0], 0)
						c.answered(&continued{row: 0, kept: k}, &replay.Outcome{Counts: replay.Counts{Output: trace.Some(osl)}})
					}
					if _, err := c.Prepare(rows[1], 1); err != nil {
						b.Fatal(err)
					}
					if c.live != nil {
						c.live.book.Drop(1)
					}
				}
			})
		}
	}
}
