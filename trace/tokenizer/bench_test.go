package tokenizer

import (
	"os"
	"strings"
	"testing"
)

// realFile is the environment variable with the path of a real model's
// tokenizer.json, which is too large for the repository.
const realFile = "MOONTIDE_TOKENIZER"

func BenchmarkAppend(b *testing.B) {
	text := strings.Repeat("The tide doesn't wait: it rises twice a day, about 50 minutes later each time.\n\n", 500)
	bench := func(name string, tok *Tokenizer) {
		var ids []uint32
		b.Run("file="+name, func(b *testing.B) {
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
	for _, variant := range []string{"llama3", "qwen2", "deepseek", "gpt2", "another pattern"} {
		bench(strings.ReplaceAll(variant, " ", "-"), tokenizerOf(b, variant))
	}
	if path := os.Getenv(realFile); path != "" {
		tok, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		bench("real", tok)
	}
}
