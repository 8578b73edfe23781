package tokenizer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// A Tokenizer turns text into tokens. Any number of goroutines may use it at
// once.
type Tokenizer struct {
	exact      added // found in the text as it is
	normalized added // found in what the normalizer made of it
	nfc        bool
	splits     []splitter
	known      bool // how all of splits work is known, not only what they match
	model      bpe
	texts      []string // of the tokens of the vocabulary, by id
	sum        string
}

// maxFile bounds a tokenizer.json in bytes. Those of large vocabularies take
// 33 MB.
const maxFile = 128 << 20

// Open reads a tokenizer.json.
func Open(path string) (*Tokenizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading tokenizer: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading tokenizer: %w", err)
	case len(text) > maxFile:
		return nil, fmt.Errorf("reading tokenizer: %s has more than %d bytes", path, maxFile)
	}
	t, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading tokenizer: %s: %w", path, err)
	}
	return t, nil
}

// Parse reads the text of a tokenizer.json.
func Parse(text []byte) (*Tokenizer, error) {
	t, err := parse(text)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	t.sum = hex.EncodeToString(sum[:])
	return t, nil
}

// SHA256 is the digest of the file, in hexadecimal.
func (t *Tokenizer) SHA256() string { return t.sum }

// SplitsAtSpaces reports whether text may be put together from pieces that
// were encoded apart: where a piece ends in anything but white space and the
// next begins with one space and a character that is none, the tokens of the
// two are those of the whole. It is known of the patterns of well-known models.
func (t *Tokenizer) SplitsAtSpaces() bool {
	return t.known && !t.exact.spansSpaces && !t.normalized.spansSpaces
}

// Append appends the tokens of text to dst. Bytes that are no UTF-8 are taken
// for U+FFFD. There is an error only where a pattern of the file takes beyond
// all measure long to match.
func (t *Tokenizer) Append(dst []uint32, text string) ([]uint32, error) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	var err error
	t.exact.cut(text, func(piece string, id uint32, isToken bool) {
		switch {
		case err != nil:
		case isToken:
			dst = append(dst, id)
		default:
			dst, err = t.appendNormalized(dst, piece)
		}
	})
	return dst, err
}

// appendNormalized appends the tokens of text without exact added tokens.
func (t *Tokenizer) appendNormalized(dst []uint32, text string) ([]uint32, error) {
	if t.nfc {
		text = norm.NFC.String(text)
	}
	var err error
	t.normalized.cut(text, func(piece string, id uint32, isToken bool) {
		switch {
		case err != nil:
		case isToken:
			dst = append(dst, id)
		default:
			dst, err = t.appendSplit(dst, piece, t.splits)
		}
	})
	return dst, err
}

// appendSplit splits text by each of the splits in turn, and appends what the
// model makes of the words.
func (t *Tokenizer) appendSplit(dst []uint32, text string, splits []splitter) ([]uint32, error) {
	if len(splits) == 0 {
		return t.model.append(dst, text), nil
	}
	s, ok := splits[0].(scanned)
	if !ok {
		return t.appendGiven(dst, text, splits)
	}
	var err error
	for len(text) > 0 && err == nil { // as split does, without a function to call
		n, matched := s.next(text)
		if matched || !s.removed {
			dst, err = t.appendSplit(dst, text[:n], splits[1:])
		}
		text = text[n:]
	}
	return dst, err
}

func (t *Tokenizer) appendGiven(dst []uint32, text string, splits []splitter) ([]uint32, error) {
	err := splits[0].split(text, func(word string) (err error) {
		dst, err = t.appendSplit(dst, word, splits[1:])
		return err
	})
	return dst, err
}

// Text is the text of a token of the vocabulary, which need not be UTF-8 by
// itself. ok is false for other ids, those of added tokens among them.
func (t *Tokenizer) Text(id uint32) (text string, ok bool) {
	if int(id) >= len(t.texts) || t.texts[id] == "" {
		return "", false
	}
	return t.texts[id], true
}

// Texts yields the texts of the vocabulary in the order of their ids, without
// added tokens.
func (t *Tokenizer) Texts() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, text := range t.texts {
			if text != "" && !yield(text) {
				return
			}
		}
	}
}
