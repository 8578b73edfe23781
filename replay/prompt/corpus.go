package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strings"
)

// AppendText appends the prompt as text of p.Len() tokens, escaped for a JSON
// string: a passage of the source's Text, or words if Text is nil. It neither
// starts nor ends with a space.
func (p Prompt) AppendText(dst []byte) []byte {
	if p.text == nil || p.length == 0 {
		return p.AppendWords(dst)
	}
	start := len(dst)
	for r := range p.runs() {
		if r.key == p.ownKey { // its draws start where the ids end
			r.from -= uint64(p.covered)
		}
		if p.segment.n > 0 {
			dst, r = p.text.appendWordRest(dst, r)
		}
		dst = p.text.appendRun(dst, r)
	}
	return append(dst[:start], dst[start+1:]...) // drop the leading space
}

// Corpus is a tokenized text from which passages are taken. It is immutable and
// safe for concurrent use.
//
// It consists of words, each with a leading space, that can be cut after any
// token: the text before the cut is still encoded to its tokens, whatever word
// follows.
type Corpus struct {
	text    []byte   // escaped for a JSON string
	lengths []uint8  // of the tokens, in bytes
	offsets []uint32 // of every offsetStep-th token in text
	words   *wordTable
	stats   CorpusStats
	sum     string
}

// CorpusStats describes how much of a dataset is used.
type CorpusStats struct {
	Tokens  int  // tokens of the text used
	Words   int  // words read from the dataset
	LeftOut int  // words dropped because they cannot be cut after each of their tokens
	Partial bool // the dataset is larger than what is used
}

// Stats returns how much of the dataset is used.
func (c *Corpus) Stats() CorpusStats { return c.stats }

// SHA256 returns a hexadecimal digest of the text and its tokens. Corpora with
// equal digests make equal prompts.
func (c *Corpus) SHA256() string { return c.sum }

const (
	// nameWords is the number of drawn words at the start of each block. They
	// distinguish blocks with the same passage: among a million blocks, no two are
	// expected to share both words and passage.
	nameWords  = 4
	offsetStep = 64 // tokens
)

// finish derives the other fields from the text and the token lengths.
func (c *Corpus) finish() {
	at := 0
	for i, n := range c.lengths {
		if i%offsetStep == 0 {
			c.offsets = append(c.offsets, uint32(at))
		}
		at += int(n)
	}
	hash := sha256.New()
	hash.Write(c.text)
	hash.Write(c.lengths)
	c.sum = hex.EncodeToString(hash.Sum(nil))
	c.stats.Tokens = len(c.lengths)
}

// offset returns the start of token i in the text, or the length of the text for i
// equal to the number of tokens.
func (c *Corpus) offset(i int) int {
	if i == len(c.lengths) {
		return len(c.text)
	}
	at := int(c.offsets[i/offsetStep])
	for _, n := range c.lengths[i-i%offsetStep : i] {
		at += int(n)
	}
	return at
}

// passage returns the first token of the passage chosen by a draw. It begins a
// word.
func (c *Corpus) passage(draw uint64) int {
	hi, _ := bits.Mul64(draw, uint64(len(c.lengths)))
	i := int(hi)
	for at := c.offset(i); c.text[at] != ' '; i++ {
		at += int(c.lengths[i])
		if at == len(c.text) {
			return 0
		}
	}
	return i
}

// tokenOf returns the token of the passage with which a run starts that is beyond the
// words of its key.
func (c *Corpus) tokenOf(r run) int {
	return (c.passage(draw(r.key, nameWords)) + int((r.from-nameWords)%uint64(len(c.lengths)))) % len(c.lengths)
}

// appendRun appends the tokens of a run: the words of its key, then its passage,
// which wraps around at the end of the text.
func (c *Corpus) appendRun(dst []byte, r run) []byte {
	n := r.n
	for ; n > 0 && r.from < nameWords; n-- {
		dst = append(dst, ' ')
		dst = c.words.appendWord(dst, draw(r.key, r.from)>>(64-wordBits))
		r.from++
	}
	if n == 0 {
		return dst
	}
	at := c.tokenOf(r)
	for n > 0 {
		taken := min(n, len(c.lengths)-at)
		dst = append(dst, c.text[c.offset(at):c.offset(at+taken)]...)
		n -= taken
		at = 0
	}
	return dst
}

// appendEscaped appends text without control characters, escaped for a JSON
// string.
func appendEscaped(dst []byte, text string) []byte {
	dst = slices.Grow(dst, len(text))
	for _, b := range []byte(text) {
		if b == '"' || b == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, b)
	}
	return dst
}

// hasControl reports whether text has a control character or invalid UTF-8.
func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' })
}

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
	if lengths, known := b.cache[string(piece)]; known {
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
