package openai

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"moontide/replay"
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
}

func repeat(n int, event string) []byte {
	return bytes.Repeat([]byte("data: "+event+"\n\n"), n)
}

// BenchmarkEvent is the cost of one event, from bytes in memory to the end of
// stream.take.
func BenchmarkEvent(b *testing.B) {
	const n = 1000
	for _, a := range answers {
		text := a.stream(n)
		b.Run(fmt.Sprintf("answer=%s", a.name), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text) / n))
			for done := 0; done < b.N; done += n {
				s := stream{out: new(replay.Outcome), expect: n}
				in := newEventReader(bytes.NewReader(text))
				at := time.Now()
				for {
					data, err := in.next()
					if err == io.EOF {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					if err := s.take(data, at); err != nil {
						b.Fatal(err)
					}
				}
				if len(s.out.Gaps) != n-1 {
					b.Fatalf("%d gaps of %d events", len(s.out.Gaps), n)
				}
			}
		})
	}
}
