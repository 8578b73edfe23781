package prompt_test

import (
	"fmt"
	"testing"

	"moontide/replay/prompt"
	"moontide/trace"
)

// BenchmarkAppend writes a long prompt in all forms, with and without ids. MB/s
// refers to the output.
func BenchmarkAppend(b *testing.B) {
	const length = 39_000
	ids := make([]uint64, length/prompt.DefaultBlockSize)
	for i := range ids {
		ids[i] = uint64(i)
	}
	for _, covered := range []string{"ids", "row"} {
		r := trace.Request{InputLength: length}
		if covered == "ids" {
			r.HashIDs = ids
		}
		var tokens []uint32
		var text []byte
		for _, form := range []struct {
			name  string
			write func(p prompt.Prompt) int
		}{
			{"tokens", func(p prompt.Prompt) int { tokens = p.AppendTokens(tokens[:0]); return 4 * len(tokens) }},
			{"json", func(p prompt.Prompt) int { text = p.AppendJSONTokens(text[:0]); return len(text) }},
			{"words", func(p prompt.Prompt) int { text = p.AppendWords(text[:0]); return len(text) }},
		} {
			b.Run(fmt.Sprintf("form=%s/from=%s/isl=%d", form.name, covered, length), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.SetBytes(int64(form.write(prompt.Source{}.Prompt(r, 1))))
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/length, "ns/token")
			})
		}
	}
}
