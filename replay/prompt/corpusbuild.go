package prompt

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

const (
	// maxCorpus bounds the text of a corpus in bytes. It is more than any
	// prompt is long, and the seams are drawn anew for every block.
	maxCorpus = 32 << 20
	// minCorpus is the least number of tokens.
	minCorpus = 1000
	// longestPiece is the longest word that is taken, in bytes with its space.
	longestPiece = 64
	// maxKnownPieces bounds the words whose tokens are remembered while a
	// corpus is made.
	maxKnownPieces = 1 << 18
)

// NewCorpus makes a corpus of the first 32 MiB of some texts. Of white space
// single spaces are left. Words that cannot be cut behind each of their tokens
// are left out; with most models these are numbers and some words with marks,
// and all of a text that has no spaces.
func NewCorpus(texts iter.Seq2[string, error], enc Encoder) (*Corpus, error) {
	if !enc.SplitsAtSpaces() {
		return nil, errors.New("the way the tokenizer splits text is not one that is known: passages of text cannot be cut to exact lengths with it")
	}
	words, err := NewWords(enc)
	if err != nil {
		return nil, err
	}
	b := corpusBuilder{Corpus: &Corpus{words: words.table()}, enc: enc, known: map[string][]uint8{}}
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
		return nil, fmt.Errorf("the dataset has %d tokens of text that can be cut at any place (%d of its %d words were left out): %d are the least", n, b.stats.LeftOut, b.stats.Words, minCorpus)
	}
	b.finish()
	return b.Corpus, nil
}

type corpusBuilder struct {
	*Corpus
	enc   Encoder
	known map[string][]uint8 // nil for those that are left out
	// Memory that is used again.
	piece       []byte
	ids, prefix []uint32
}

func (b *corpusBuilder) add(text string) error {
	for word := range strings.FieldsSeq(text) {
		b.stats.Words++
		if len(word) >= longestPiece {
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

// lengthsOf returns the lengths of a piece's tokens as they stand in a JSON
// string, nil where the piece cannot be used.
func (b *corpusBuilder) lengthsOf(piece []byte) ([]uint8, error) {
	if lengths, ok := b.known[string(piece)]; ok {
		return lengths, nil
	}
	text := string(piece)
	lengths, err := b.cut(text)
	if err == nil && len(b.known) < maxKnownPieces {
		b.known[text] = lengths
	}
	return lengths, err
}

func (b *corpusBuilder) cut(piece string) (lengths []uint8, err error) {
	if isControl(piece) {
		return nil, nil
	}
	if b.ids, err = b.enc.Append(b.ids[:0], piece); err != nil {
		return nil, err
	}
	at := 0
	for i, id := range b.ids {
		text, ok := b.enc.Text(id)
		if !ok || !strings.HasPrefix(piece[at:], text) {
			return nil, nil // an added token, or other text than was given
		}
		at += len(text)
		if whole, err := b.wholeAt(piece, at, i+1); !whole || err != nil {
			return nil, err
		}
		lengths = append(lengths, uint8(len(appendEscaped(nil, text))))
	}
	if at != len(piece) {
		return nil, nil
	}
	return lengths, nil
}

// wholeAt reports whether a piece may be cut at a place, behind n of its
// tokens: what is before it must be the same tokens by itself, and no space
// alone, which a server may strip and which the space of the next piece would
// be taken together with.
func (b *corpusBuilder) wholeAt(piece string, at, n int) (bool, error) {
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
