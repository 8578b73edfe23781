package tokenizer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

var allVariants = []string{"llama3", "qwen2", "deepseek", "gpt2", "o200k", "tekken", "digits, then removed"}

// memoryOf returns a memory with small pieces.
func memoryOf(tok *Tokenizer, most, size, least int) *Memory {
	m := NewMemory(tok, most)
	m.size, m.least = size, least
	return m
}

// sealedBytes returns the bytes of the tokens that a memory keeps.
func (m *Memory) sealedBytes() (n int) {
	for _, of := range []map[pieceName][]byte{m.recent, m.older} {
		for _, sealed := range of {
			n += len(sealed) + pieceCost
		}
	}
	return n
}

// Tokens are those of the tokenizer, whatever was seen before, wherever texts are cut, and
// whatever is forgotten, and the memory is bounded.
func TestMemoryEncodesTheSame(t *testing.T) {
	for _, variant := range allVariants {
		tok := tokenizerOf(t, variant)
		added := rapid.SampledFrom([]string{"<|end|>", "<|im_end|>", "<｜User｜>", "<mask>", "<br>", "<tool>x", "é!", "\xff"})
		rapid.Check(t, func(t *rapid.T) {
			most := rapid.IntRange(0, 4000).Draw(t, "most")
			m := memoryOf(tok, most, rapid.IntRange(1, 20).Draw(t, "size"), rapid.IntRange(1, 20).Draw(t, "least"))
			var seen []string
			for range rapid.IntRange(1, 8).Draw(t, "texts") {
				text := strings.Join(rapid.SliceOfN(rapid.OneOf(texts(), added, rapid.Just(" ")), 0, 8).Draw(t, "parts"), "")
				if len(seen) > 0 { // it continues another one
					text = rapid.SampledFrom(seen).Draw(t, "before") + text
				}
				seen = append(seen, text)
				want, err := tok.Append([]uint32{7}, text)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := m.Append([]uint32{7}, text); err != nil || !slices.Equal(got, want) {
					t.Fatalf("%s: %q is %v, want %v (%v)", variant, text, got, want, err)
				}
				if n := m.sealedBytes(); n > most {
					t.Fatalf("%s: it keeps %d bytes of %d", variant, n, most)
				}
			}
		})
	}
}

// conversation returns the texts of a request: those of the one before, and two more.
func conversation(turns int) (all []string) {
	for turn := range turns {
		all = append(all, fmt.Sprintf("%d: %s", turn, strings.Repeat(fmt.Sprintf("the tide %d rises and ", turn), 200)))
	}
	return all
}

// What was seen is not encoded again, also if it is the beginning of a longer text, or was
// used before much else was.
func TestMemoryRemembers(t *testing.T) {
	m := NewMemory(tokenizerOf(t, "llama3"), 1<<20)
	texts := conversation(3)
	texts = append(texts, strings.Join(texts, " ")) // whose first piece is that of the first
	for _, text := range texts {
		if _, err := m.Append(nil, text); err != nil {
			t.Fatal(err)
		}
	}
	known := len(m.recent)
	for _, text := range append(texts, texts[3]+" and so on") {
		m.Append(nil, text)
	}
	if got := len(m.recent); got > known+1 {
		t.Errorf("%d pieces, and %d when they come again", known, got)
	}
	m = NewMemory(m.of, 60_000)
	for i := range 100 {
		m.Append(nil, texts[0])
		m.Append(nil, fmt.Sprint(i, texts[1]))
	}
	name, _ := m.digest(texts[0][:m.piece(texts[0])])
	if _, ok := m.find(name); !ok {
		t.Error("a text that is always used is forgotten")
	}
}

// Neither a text nor its tokens are in what is kept.
func TestMemoryKeepsNoText(t *testing.T) {
	tok := tokenizerOf(t, "llama3")
	m, other := NewMemory(tok, 1<<20), NewMemory(tok, 1<<20)
	text := conversation(1)[0][:1000]
	ids, err := m.Append(nil, text)
	if err != nil {
		t.Fatal(err)
	}
	other.Append(nil, text)
	var plain []byte
	for _, id := range ids {
		plain = binary.LittleEndian.AppendUint32(plain, id)
	}
	for name, sealed := range m.recent {
		for at := 0; at+8 <= len(plain); at += 4 {
			if bytes.Contains(sealed, plain[at:at+8]) {
				t.Fatalf("tokens %d and %d can be read", at/4, at/4+1)
			}
		}
		if _, ok := other.recent[name]; ok {
			t.Error("two memories have one key")
		}
	}
	if len(m.recent) != 1 || len(other.recent) != 1 {
		t.Errorf("%d and %d pieces, want 1", len(m.recent), len(other.recent))
	}
}

// A memory may be used by several goroutines.
func TestMemoryIsShared(t *testing.T) {
	tok := tokenizerOf(t, "qwen2")
	m := NewMemory(tok, 30_000)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for _, text := range slices.Repeat(conversation(10), 5) {
				want, _ := tok.Append(nil, text)
				if got, err := m.Append(nil, text); err != nil || !slices.Equal(got, want) {
					t.Errorf("%d tokens, want %d (%v)", len(got), len(want), err)
				}
			}
		})
	}
	all.Wait()
}
