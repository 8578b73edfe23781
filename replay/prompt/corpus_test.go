package prompt_test

import (
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"moontide/replay/prompt"
	"moontide/trace"
	"moontide/trace/tokenizer"
)

func given(texts ...string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, text := range texts {
			if !yield(text, nil) {
				return
			}
		}
	}
}

func corpusOf(t testing.TB, tok *tokenizer.Tokenizer, texts ...string) *prompt.Corpus {
	t.Helper()
	c, err := prompt.NewCorpus(given(texts...), tok)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// said returns a prompt as text and the tokens of this text.
func said(t *rapid.T, tok *tokenizer.Tokenizer, s prompt.Source, r trace.Request, row int) (string, []uint32) {
	var text string
	body := append(s.Prompt(r, row).AppendText([]byte(`x"`)), '"')
	if err := json.Unmarshal(body[1:], &text); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if strings.TrimSpace(text) != text || strings.Contains(text, "  ") {
		t.Fatalf("%q has spaces at its ends, or two together", text)
	}
	ids, err := tok.Append(nil, text)
	if err != nil {
		t.Fatal(err)
	}
	return text, ids
}

// A prompt made of passages has exactly the input length in tokens, and is a
// prefix of any longer prompt, in both text and tokens.
func TestPassagesHaveExactlyTheInputLength(t *testing.T) {
	tok := usual(t).tokenizer(t)
	corpus := corpusOf(t, tok, prose(3000), prose(50))
	if s := corpus.Stats(); s.LeftOut == 0 || s.LeftOut > s.Words/2 || s.Tokens <= s.Words-s.LeftOut || s.Partial {
		t.Fatalf("%+v is not a mixture", s)
	}
	rapid.Check(t, func(t *rapid.T) {
		s, long, row := sources(t), requests(t), rows(t)
		s.Text = corpus
		if rapid.Bool().Draw(t, "longer than the corpus") {
			long.InputLength += corpus.Stats().Tokens
		}
		text, ids := said(t, tok, s, long, row)
		if len(ids) != long.InputLength {
			t.Fatalf("%d tokens, want %d: %q", len(ids), long.InputLength, text)
		}
		short := long
		short.InputLength = rapid.IntRange(0, long.InputLength).Draw(t, "shorter ISL")
		beginning, first := said(t, tok, s, short, row)
		if !strings.HasPrefix(text, beginning) || !slices.Equal(first, ids[:len(first)]) || len(first) != short.InputLength {
			t.Fatalf("%q is not the beginning of %q", beginning, text)
		}
	})
}

// Words that cannot be cut after each token, or that a server would read
// differently, are dropped.
func TestWhatIsLeftOut(t *testing.T) {
	v := usual(t)
	v.added = []string{"<|end|>"}
	tok := v.tokenizer(t)
	kept := []string{"boy", "moonrise", `"x`, `a\b`, "visit"}
	left := []string{
		"1984",             // the first token is a space alone
		"boyish",           // its beginning is one token, but the cut text is not
		"x<|end|>",         // an added token
		"a\x01b", "a\x7fb", // control characters
		"été", "a😀", // a token ends within a character
		"a\xffb",                   // invalid UTF-8
		strings.Repeat("ab", 1000), // too long
	}
	corpus := corpusOf(t, tok, strings.Repeat(strings.Join(kept, "\t")+"\n"+strings.Join(left, "\u00a0")+" ", 200))
	if s := corpus.Stats(); s.Words != 200*(len(kept)+len(left)) || s.LeftOut != 200*len(left) {
		t.Errorf("%+v", s)
	}
	text := string(prompt.Source{Text: corpus}.Prompt(trace.Request{InputLength: 5000}, 0).AppendText(nil))
	_, passage, _ := strings.Cut(text, ` boy moonrise \"x a\\b visit `)
	for word := range strings.FieldsSeq(passage[:1000] + "\n" + passage[:10]) {
		if !slices.Contains([]string{"boy", "moonrise", `\"x`, `a\\b`, "visit"}, word) && !strings.HasSuffix(passage[:1000], word) && !strings.HasSuffix(passage[:10], word) {
			t.Errorf("%q is in a prompt", word)
		}
	}
}

func TestCorpusRefused(t *testing.T) {
	tok := usual(t).tokenizer(t)
	unknown := usual(t)
	unknown.pattern = ` ?\S+|\s+`
	joined := usual(t)
	joined.added = []string{"a b"}
	failed := errors.New("broken disk")
	for want, make := range map[string]func() (*prompt.Corpus, error){
		"broken disk": func() (*prompt.Corpus, error) {
			return prompt.NewCorpus(func(yield func(string, error) bool) { yield("", failed) }, tok)
		},
		"has only 1 usable tokens (1 of its 2 words were left out); at least 1000 are needed": func() (*prompt.Corpus, error) {
			return prompt.NewCorpus(given("boy 1984"), tok)
		},
		"the tokenizer splits text in an unknown way": func() (*prompt.Corpus, error) {
			return prompt.NewCorpus(given(prose(3000)), unknown.tokenizer(t))
		},
		"splits text in an unknown": func() (*prompt.Corpus, error) {
			return prompt.NewCorpus(given(prose(3000)), joined.tokenizer(t))
		},
	} {
		if c, err := make(); c != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// A dataset of any size takes bounded memory.
func TestCorpusIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, in one goroutine")
	}
	tok, part, given := usual(t).tokenizer(t), strings.Repeat("the boy visit ", 100_000), 0
	c, err := prompt.NewCorpus(func(yield func(string, error) bool) {
		for yield(part, nil) {
			given++
		}
	}, tok)
	if err != nil || !c.Stats().Partial || given > 32<<20/len(part) {
		t.Errorf("%d texts of %d bytes were read, %+v, error %v", given, len(part), c.Stats(), err)
	}
}

// Prompts made of passages are part of the format and must not change.
func TestGoldenPassages(t *testing.T) {
	s := prompt.Source{Seed: 7, Salt: "run-1", BlockSize: 8, Text: corpusOf(t, usual(t).tokenizer(t), prose(3000))}
	const want = `lion vest cross aim x \"qu ski went seen hard waves top mars deal jest`
	if got := string(s.Prompt(trace.Request{InputLength: 20, HashIDs: []uint64{3, 4}}, 5).AppendText(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCorpusDigest(t *testing.T) {
	tok := usual(t).tokenizer(t)
	a, again, b := corpusOf(t, tok, prose(3000)), corpusOf(t, tok, prose(1500), prose(3000)[len(prose(1500)):]), corpusOf(t, tok, prose(3100))
	other := corpusOf(t, tok, strings.Replace(prose(3000), "the", "boy", 1))
	if a.SHA256() != again.SHA256() || a.SHA256() == b.SHA256() || a.SHA256() == other.SHA256() || len(a.SHA256()) != 64 {
		t.Errorf("digests %s, %s, %s, %s", a.SHA256(), again.SHA256(), b.SHA256(), other.SHA256())
	}
}
