package prompt

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// Encoder is the tokenizer of a model, as far as prompts need one.
type Encoder interface {
	// Append appends the tokens of text to dst.
	Append(dst []uint32, text string) ([]uint32, error)
	// Text is the text of a token.
	Text(id uint32) (text string, ok bool)
	// Texts yields the texts of the vocabulary, in an order that stays.
	Texts() iter.Seq[string]
	// SplitsAtSpaces reports whether pieces that each begin with one space and
	// have no other may be encoded apart.
	SplitsAtSpaces() bool
	// SHA256 tells the tokenizer from others.
	SHA256() string
}

// Words are 1024 words of one token each. A nil *Words is the list of this
// package, which goes with the usual vocabularies.
type Words struct {
	packed    *wordTable
	replaced  int
	tokenizer string
}

func (w *Words) table() *wordTable {
	if w == nil {
		return words
	}
	return w.packed
}

// Replaced is how many words of the list were none of one token.
func (w *Words) Replaced() int {
	if w == nil {
		return 0
	}
	return w.replaced
}

// Tokenizer is the SHA256 of the tokenizer that the words are chosen for, ""
// where there was none.
func (w *Words) Tokenizer() string {
	if w == nil {
		return ""
	}
	return w.tokenizer
}

// plainWord are words that a text can be made of like those of the list.
var plainWord = regexp.MustCompile(`^ [a-z]{2,6}$`)

// NewWords chooses words for a vocabulary: those of the list, and in the places
// of the words that are not one token others, in the order of the alphabet.
func NewWords(enc Encoder) (*Words, error) {
	chosen := strings.Fields(wordList)
	var wrong []int
	for i, word := range chosen {
		switch one, err := isOneToken(enc, word); {
		case err != nil:
			return nil, err
		case !one:
			wrong = append(wrong, i)
		}
	}
	if len(wrong) > 0 {
		others, err := otherWords(enc, chosen)
		if err != nil {
			return nil, err
		}
		if len(others) < len(wrong) {
			return nil, fmt.Errorf("the vocabulary has %d words of one token: %d are needed", wordCount-len(wrong)+len(others), wordCount)
		}
		for n, i := range wrong {
			chosen[i] = others[n]
		}
	}
	ids, err := enc.Append(nil, strings.Join(chosen, " "))
	switch {
	case err != nil:
		return nil, err
	case len(ids) != wordCount:
		return nil, errors.New("the tokenizer does not split text before a space: no words are one token each")
	}
	return &Words{packWords(chosen), len(wrong), enc.SHA256()}, nil
}

// otherWords are the words of one token that a vocabulary has beside those of
// a list.
func otherWords(enc Encoder, list []string) ([]string, error) {
	var others []string
	for text := range enc.Texts() {
		if !plainWord.MatchString(text) || slices.Contains(list, text[1:]) {
			continue
		}
		switch one, err := isOneToken(enc, text[1:]); {
		case err != nil:
			return nil, err
		case one:
			others = append(others, text[1:])
		}
	}
	slices.Sort(others)
	return slices.Compact(others), nil
}

// isOneToken reports whether a word is one token at the start of a text and
// behind a space.
func isOneToken(enc Encoder, word string) (bool, error) {
	ids, err := enc.Append(nil, word)
	if err != nil || len(ids) != 1 {
		return false, err
	}
	ids, err = enc.Append(ids[:0], " "+word)
	return len(ids) == 1, err
}
