package openai

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/openai/http1"
	"moontide/replay/openai/poll"
)

// answers are streams of n token chunks as servers send them.
var answers = []struct {
	name   string
	api    *api
	stream func(n int) []byte
}{
	{"completions", &completionsAPI, func(n int) []byte {
		return repeat(n, `{"id":"cmpl-6a3f0c9be5d14a4e8f2f6b1f2f0d4c11","object":"text_completion","created":1732175000,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"text":" tide","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}`)
	}},
	{"chat", &chatAPI, func(n int) []byte {
		return repeat(n, `{"id":"chatcmpl-6a3f0c9be5d14a4e8f2f6b1f2f0d4c11","object":"chat.completion.chunk","created":1732175000,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"delta":{"content":" \"tide\"\n"},"logprobs":null,"finish_reason":null}]}`)
	}},
	{"usage", &chatAPI, func(n int) []byte {
		return repeat(n, `{"id":"chatcmpl-6a3f0c9be5d14a4e8f2f6b1f2f0d4c11","object":"chat.completion.chunk","created":1732175000,"model":"m","choices":[{"index":0,"delta":{"content":" tide"},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":1000,"total_tokens":1100,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":512}}}`)
	}},
	{"floats", &chatAPI, func(n int) []byte {
		return repeat(n, `{"id":"1","choices":[{"index":0,"delta":{"content":" tide"},"finish_reason":null}],"usage":{"prompt_tokens":1000.0,"completion_tokens":100.0}}`)
	}},
	{"responses", &responsesAPI, func(n int) []byte {
		return repeat(n, `{"type":"response.output_text.delta","sequence_number":17,"item_id":"msg_6a3f0c9be5d14a4e8f2f6b1f2f0d4c11","output_index":0,"content_index":0,"delta":" tide","logprobs":[]}`)
	}},
	{"messages", &messagesAPI, func(n int) []byte {
		return repeat(n, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" tide"}}`)
	}},
	{"generate", &generateAPI, func(n int) []byte {
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
func BenchmarkEvent(b *testing.B) {
	const n = 100
	for _, a := range answers {
		text := []byte(inChunk(string(a.stream(n))))
		b.Run(fmt.Sprintf("answer=%s", a.name), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text) / n))
			at := poll.Arrival{Time: time.Now()}
			to := &answer{stream: stream{api: a.api}}
			response := http1.Response{Sink: to}
			response.Feed([]byte(streamed), at)
			for done := 0; done < b.N; done += n {
				to.stream.gaps = gaps{to.stream.gaps.bytes[:0], 0}
				to.stream.counts = replay.Counts{}
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
