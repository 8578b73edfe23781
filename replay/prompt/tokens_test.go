package prompt_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"moontide/trace/tokenizer"
)

// vocabulary describes a tokenizer.json: texts that are one token each, and pairs
// that are merged in other texts.
type vocabulary struct {
	texts   []string
	merges  [][2]string
	pattern string // "" means Llama 3's
	added   []string
}

// usual returns a vocabulary with all words of the list and every letter at the
// start of a word, so that other words are several tokens.
func usual(t testing.TB) vocabulary {
	t.Helper()
	list, err := os.ReadFile("words.txt")
	if err != nil {
		t.Fatal(err)
	}
	var v vocabulary
	for word := range strings.FieldsSeq(string(list)) {
		v.texts = append(v.texts, word, "Ġ"+word)
	}
	for c := 'a'; c <= 'z'; c++ {
		v.merges = append(v.merges, [2]string{"Ġ", string(c)})
	}
	v.merges = append(v.merges, [2]string{"Ġ", `"`}, [2]string{"Ġ", `\`}, [2]string{"e", "s"})
	return v
}

// without removes words from the vocabulary.
func (v vocabulary) without(words ...string) vocabulary {
	v.texts = slices.DeleteFunc(slices.Clone(v.texts), func(text string) bool {
		return slices.Contains(words, strings.TrimPrefix(text, "Ġ"))
	})
	return v
}

// usualFew is the vocabulary with the first n usual words only.
func usualFew(t testing.TB, n int) vocabulary {
	v := usual(t)
	v.texts = v.texts[:2*n] // each with and without a space
	return v
}

// tokenizer makes the tokenizer.
func (v vocabulary) tokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	vocab := map[string]int{}
	add := func(text string) {
		if _, ok := vocab[text]; !ok {
			vocab[text] = len(vocab)
		}
	}
	next := rune(256)
	for b := rune(0); b < 256; b++ { // as a vocabulary writes bytes
		if '!' <= b && b <= '~' || 0xA1 <= b && b != 0xAD {
			add(string(b))
			continue
		}
		add(string(next))
		next++
	}
	for _, m := range v.merges {
		add(m[0] + m[1])
	}
	for _, text := range v.texts {
		add(text)
	}
	if v.pattern == "" {
		v.pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	}
	var added []any
	for i, text := range v.added {
		added = append(added, map[string]any{"id": len(vocab) + i, "content": text})
	}
	file := map[string]any{
		"added_tokens": added,
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{
			map[string]any{"type": "Split", "pattern": map[string]string{"Regex": v.pattern}, "behavior": "Isolated", "invert": false},
			map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
		}},
		"model": map[string]any{"type": "BPE", "ignore_merges": true, "vocab": vocab, "merges": v.merges},
	}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	made, err := tokenizer.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func count(t fataler, tok *tokenizer.Tokenizer, text string) int {
	ids, err := tok.Append(nil, text)
	if err != nil {
		t.Fatal(err)
	}
	return len(ids)
}

type fataler interface{ Fatal(...any) }

// prose returns a text of about this many words, some of several tokens, some
// unusable.
func prose(words int) string {
	var text strings.Builder
	for i := range words {
		fmt.Fprintf(&text, "%s ", []string{"tide", "moonrise", "the", "undertow", `"quoted`, `back\slash`, "1984", "waves", "\n\nsea", "été", "x"}[(i*i+i/11)%11])
		if i%7 == 0 {
			fmt.Fprintf(&text, "%c%c ", 'a'+i%26, 'a'+i/26%26)
		}
	}
	return text.String()
}
