package prompt_test

import (
	"strings"
	"testing"

	"moontide/replay/prompt"
)

// Words that are not one token each are replaced, and no others.
func TestWordsOfAnotherVocabulary(t *testing.T) {
	if words, err := prompt.NewWords(usual(t).tokenizer(t)); err != nil || words.Replaced != 0 {
		t.Fatalf("%d of the usual words are replaced, error %v", words.Replaced, err)
	}
	v := usual(t).without("able", "plant")
	v.texts = append(v.texts, "able", "zzz", "Ġzzz", "Ġzz", "Ġlongest", "longest", "qqqqqq", "Ġqqqqqq", "Qq", "ĠQq")
	tok := v.tokenizer(t)
	words, err := prompt.NewWords(tok)
	if err != nil || words.Replaced != 2 || words.Tokenizer != tok.SHA256() {
		t.Fatalf("%d words replaced, error %v", words.Replaced, err)
	}
	usual := strings.Fields(string(prompt.Source{}.Filler("x", 5000).AppendWords(nil)))
	text := string(prompt.Source{Words: words}.Filler("x", 5000).AppendWords(nil))
	if n := count(t, tok, text); n != 5000 {
		t.Errorf("5000 words are %d tokens", n)
	}
	for i, word := range strings.Fields(text) {
		want := usual[i]
		switch want {
		case "able":
			want = "qqqqqq"
		case "plant":
			want = "zzz"
		}
		if word != want {
			t.Fatalf("word %d is %q, want %q", i, word, want)
		}
	}
}

// A vocabulary with too few words has all of them repeated, and prompts have as many
// tokens as words.
func TestFewWords(t *testing.T) {
	few := usualFew(t, 90)
	few.texts = append(few.texts, "zzz", "Ġzzz")
	tok := few.tokenizer(t)
	words, err := prompt.NewWords(tok)
	if err != nil || words.Distinct != 91 {
		t.Fatalf("%d words, error %v", words.Distinct, err)
	}
	text := string(prompt.Source{Words: words}.Filler("x", 50_000).AppendWords(nil))
	if n := count(t, tok, text); n != 50_000 {
		t.Errorf("50000 words are %d tokens", n)
	}
	seen := map[string]int{}
	for word := range strings.FieldsSeq(text) {
		seen[word]++
	}
	if len(seen) != 91 {
		t.Errorf("%d different words", len(seen))
	}
	for word, n := range seen {
		if n < 300 || n > 900 { // 549 on average
			t.Errorf("%q is used %d times", word, n)
		}
	}
}

func TestNoWords(t *testing.T) {
	glued := usual(t)
	glued.pattern = `.+`
	for want, v := range map[string]vocabulary{
		"the vocabulary has only 63 suitable words of one token; 64 are needed": usualFew(t, 63),
		"does not split text at spaces":                                         glued,
	} {
		if _, err := prompt.NewWords(v.tokenizer(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
