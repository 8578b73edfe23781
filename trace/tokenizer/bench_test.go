package tokenizer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// BenchmarkConversations measures encoding the messages of 50 conversations of ten turns,
// each of which sends those before it again: 85 % of the bytes were sent before.
func BenchmarkConversations(b *testing.B) {
	for _, with := range []string{"tokenizer", "memory"} {
		benchTexts(b, func(name string, tok *Tokenizer, text string) {
			requests, size := conversations(text, 50, 10)
			var ids []uint32
			b.Run(fmt.Sprintf("file=%s/with=%s", name, with), func(b *testing.B) {
				b.SetBytes(int64(size))
				for b.Loop() {
					encode := tok.Append
					if with == "memory" {
						encode = NewMemory(tok, DefaultMemory).Append
					}
					for _, messages := range requests {
						for _, message := range messages {
							var err error
							if ids, err = encode(ids[:0], message); err != nil {
								b.Fatal(err)
							}
						}
					}
				}
			})
		})
	}
}

// conversations returns the messages of requests, and their bytes: one prompt of the system
// of 2 kB, and questions of 400 bytes and answers of 1,200 from all over the text.
func conversations(text string, n, turns int) (requests [][]string, size int) {
	text = strings.Repeat(text, 1+10_000/len(text))
	at := 0
	cut := func(length int) string {
		at = (at + 1613) % (len(text) - length) // a prime, so that texts differ
		return strings.ToValidUTF8(text[at:at+length], "")
	}
	history := make([][]string, n)
	system := cut(2000)
	for range turns {
		for i := range history {
			if history[i] == nil {
				history[i] = []string{system}
			} else {
				history[i] = append(history[i], cut(1200))
			}
			history[i] = append(history[i], cut(400))
			requests = append(requests, slices.Clone(history[i]))
			for _, message := range history[i] {
				size += len(message)
			}
		}
	}
	return requests, size
}
