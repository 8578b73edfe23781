package tokenizer

import (
	"strings"
	"testing"
)

func BenchmarkAppend(b *testing.B) {
	text := strings.Repeat("The tide doesn't wait: it rises twice a day, about 50 minutes later each time.\n\n", 500)
	for _, variant := range []string{"llama3", "qwen2", "deepseek", "gpt2", "o200k", "tekken"} {
		tok := tokenizerOf(b, variant)
		var ids []uint32
		b.Run("file="+variant, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				var err error
				if ids, err = tok.Append(ids[:0], text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
