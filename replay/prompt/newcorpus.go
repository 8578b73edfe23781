package prompt

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

const (
	maxCorpus = 32 << 20 // bytes, more than any prompt
	minCorpus = 1000     // tokens
	maxPiece  = 64       // bytes in a word including its space
	maxCached = 1 << 18  // words cached while a corpus is made
)

// NewCorpus makes a corpus from the first 32 MiB of texts, replacing white space
// with single spaces. Words that cannot be cut after each of their tokens are
// dropped: with most models numbers, some words with punctuation, and all text
// without spaces.
func NewCorpus(texts iter.Seq2[string, error], enc Encoder) (*Corpus, error) {
	if !enc.SplitsAtSpaces() {
		return nil, errors.New("the tokenizer splits text in an unknown way, so passages cannot be cut to exact lengths")
	}
	words, err := NewWords(enc)
	if err != nil {
		return nil, err
	}
	b := corpusBuilder{Corpus: &Corpus{words: words.table()}, enc: enc, cache: map[string][]uint8{}}
	for text, err := range texts {
		if err != nil {
			return nil, err
		}
		if err := b.add(text); err != nil {
			return nil, err
		}
		if b.stats.Partial {
			break
		}
	}
	if n := len(b.lengths); n < minCorpus {
		return nil, fmt.Errorf("the dataset has only %d usable tokens (%d of its %d words were left out); at least %d are needed", n, b.stats.LeftOut, b.stats.Words, minCorpus)
	}
	b.finish()
	return b.Corpus, nil
}

type corpusBuilder struct {
	*Corpus
	enc   Encoder
	cache map[string][]uint8 // lengths of tokens; nil for dropped words
	// Reused buffers.
	piece       []byte
	ids, prefix []uint32
}

func (b *corpusBuilder) add(text string) error {
	for word := range strings.FieldsSeq(text) {
		b.stats.Words++
		if len(word) >= maxPiece {
			b.stats.LeftOut++
			continue
		}
		b.piece = append(append(b.piece[:0], ' '), word...)
		lengths, err := b.lengthsOf(b.piece)
		switch {
		case err != nil:
			return err
		case lengths == nil:
			b.stats.LeftOut++
			continue
		case len(b.text)+2*len(b.piece) > maxCorpus:
			b.stats.Partial = true
			return nil
		}
		b.text = appendEscaped(b.text, string(b.piece))
		b.lengths = append(b.lengths, lengths...)
	}
	return nil
}

// lengthsOf returns the lengths of a piece's tokens, escaped for a JSON string, or
// nil if the piece is not usable.
func (b *corpusBuilder) lengthsOf(piece []byte) ([]uint8, error) {
	if lengths, ok := b.cache[string(piece)]; ok {
		return lengths, nil
	}
	text := string(piece)
	lengths, err := b.tokenLengths(text)
	if err == nil && len(b.cache) < maxCached {
		b.cache[text] = lengths
	}
	return lengths, err
}

func (b *corpusBuilder) tokenLengths(piece string) (lengths []uint8, err error) {
	if hasControl(piece) {
		return nil, nil
	}
	if b.ids, err = b.enc.Append(b.ids[:0], piece); err != nil {
		return nil, err
	}
	at := 0
	for i, id := range b.ids {
		text, ok := b.enc.Text(id)
		if !ok || !strings.HasPrefix(piece[at:], text) {
			return nil, nil // an added token, or text that does not round-trip
		}
		at += len(text)
		if whole, err := b.canCut(piece, at, i+1); !whole || err != nil {
			return nil, err
		}
		lengths = append(lengths, uint8(len(appendEscaped(nil, text))))
	}
	if at != len(piece) {
		return nil, nil
	}
	return lengths, nil
}

// canCut reports whether a piece can be cut after its first n tokens: the text
// before the cut must be encoded to the same tokens, and must not be a space
// alone, which a server may strip and which would merge with the next piece's
// space.
func (b *corpusBuilder) canCut(piece string, at, n int) (bool, error) {
	if at == len(piece) {
		return true, nil
	}
	if at == len(" ") {
		return false, nil
	}
	var err error
	b.prefix, err = b.enc.Append(b.prefix[:0], piece[:at])
	return slices.Equal(b.prefix, b.ids[:n]), err
}
