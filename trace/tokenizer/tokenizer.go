package tokenizer

import (
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
)

// Tokenizer encodes text. It is safe for concurrent use.
type Tokenizer struct {
	exact      added // matched before normalization
	normalized added // matched after it
	nfc        bool
	splits     []splitter
	model      bpe
	texts      []string // of the vocabulary, by id
	sum        string
}

// maxFile is the maximum size of a tokenizer.json in bytes. Files of large
// vocabularies have 33 MB.
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
		return nil, fmt.Errorf("reading tokenizer: %s is larger than %d bytes", path, maxFile)
	}
	t, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading tokenizer: %s: %w", path, err)
	}
	return t, nil
}

// Parse parses the text of a tokenizer.json.
func Parse(text []byte) (*Tokenizer, error) {
	var f file
	if err := strict.Unmarshal(text, &f); err != nil {
		return nil, unread("the file", err)
	}
	t := &Tokenizer{sum: fmt.Sprintf("%x", sha256.Sum256(text))}
	for _, step := range []func(*Tokenizer) error{f.readModel, f.readNormalizer, f.readPreTokenizer, f.readAdded} {
		if err := step(t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// SHA256 returns the digest of the file in hexadecimal.
func (t *Tokenizer) SHA256() string { return t.sum }

// SplitsAtSpaces reports whether pieces of text may be encoded separately: if a
// piece ends in a character other than white space and the next one begins with a
// single space and another character, their tokens are those of the whole. This
// holds for the patterns of well-known models.
func (t *Tokenizer) SplitsAtSpaces() bool {
	for _, split := range t.splits {
		if !split.atSpaces() {
			return false
		}
	}
	return !t.exact.spansSpaces && !t.normalized.spansSpaces
}

// Append appends the tokens of text to dst. Invalid UTF-8 is encoded as U+FFFD.
// The only error is a pattern of the file that takes more than 5 s to match.
func (t *Tokenizer) Append(dst []uint32, text string) ([]uint32, error) {
	return t.encode(dst, strings.ToValidUTF8(text, "\uFFFD"))
}

// Text returns the text of a token of the vocabulary, which may be invalid
// UTF-8. ok is false for other ids, including added tokens.
func (t *Tokenizer) Text(id uint32) (text string, ok bool) {
	if int(id) >= len(t.texts) || t.texts[id] == "" {
		return "", false
	}
	return t.texts[id], true
}

// Texts yields the texts of the vocabulary in order of their ids, without added
// tokens.
func (t *Tokenizer) Texts() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, text := range t.texts {
			if text != "" && !yield(text) {
				return
			}
		}
	}
}
