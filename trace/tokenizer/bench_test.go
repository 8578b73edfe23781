package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Environment variables with the paths of a real model's tokenizer.json, which is too
// large for the repository, and of texts to encode with it.
const (
	realFile = "MOONTIDE_TOKENIZER"
	realText = "MOONTIDE_TEXT"
)

func BenchmarkAppend(b *testing.B) {
	benchTexts(b, func(name string, tok *Tokenizer, text string) {
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
	})
}

// benchTexts calls bench for each tokenizer and text.
func benchTexts(b *testing.B, bench func(name string, tok *Tokenizer, text string)) {
	text := strings.Repeat("The tide doesn't wait: it rises twice a day, about 50 minutes later each time.\n\n", 500)
	for _, variant := range []string{"llama3", "qwen2", "deepseek", "gpt2", "o200k", "tekken"} {
		bench(strings.ReplaceAll(variant, " ", "-"), tokenizerOf(b, variant), text)
	}
	path := os.Getenv(realFile)
	if path == "" {
		return
	}
	tok, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	paths := filepath.SplitList(os.Getenv(realText))
	for _, path := range paths {
		real, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		bench("real/text="+strings.TrimSuffix(filepath.Base(path), ".txt"), tok, string(real))
	}
	if len(paths) == 0 {
		bench("real", tok, text)
	}
}
