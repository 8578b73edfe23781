package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"math/bits"
	"slices"
	"strings"
)

// AppendText appends the prompt as text of p.Len() tokens, escaped for a JSON
// string: a passage of the source's Text, or words if it has none. It neither
// starts nor ends with a space.
func (p Prompt) AppendText(dst []byte) []byte {
	if p.text == nil || p.length == 0 {
		return p.AppendWords(dst)
	}
	start := len(dst)
	for r := range p.runs() {
		if r.key == p.ownKey { // it counts from where the ids end
			r.from -= uint64(len(p.blocks) * p.blockSize)
		}
		dst = p.text.appendRun(dst, r)
	}
	return append(dst[:start], dst[start+1:]...) // without the first space
}

// Corpus is a text, cut into tokens, to take passages from. It is immutable: any
// number of goroutines may use it at once.
//
// It consists of words, each with a space in front, that may be cut behind any
// token: what is before the cut is still encoded to its tokens, whatever word
// comes next.
type Corpus struct {
	text    []byte   // escaped for a JSON string
	lengths []uint8  // of the tokens, in bytes
	offsets []uint32 // of every offsetStep-th token in text
	words   *wordTable
	stats   CorpusStats
	sum     string
}

// CorpusStats tell how much of a dataset is used.
type CorpusStats struct {
	Tokens  int  // of the text that is used
	Words   int  // of the dataset, as far as it was read
	LeftOut int  // words that cannot be cut behind each of their tokens
	Partial bool // the dataset is larger than what is used
}

// Stats tell how much of the dataset is used.
func (c *Corpus) Stats() CorpusStats { return c.stats }

// SHA256 is a hexadecimal digest of the text and its tokens: equal ones make
// equal prompts.
func (c *Corpus) SHA256() string { return c.sum }

const (
	// nameWords is the number of drawn words at the start of each block. They
	// make blocks of the same passage differ: among a million blocks no two are
	// expected with the same words and passage.
	nameWords  = 4
	offsetStep = 64 // tokens
)

// finish derives the rest from the text and the lengths of its tokens.
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

// offset is where token i begins in the text, or the end for the one behind the
// last.
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

// passage is the first token of the passage that a draw chooses: one that begins
// a word.
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

// appendRun appends the tokens of a run: the words of its key, then its passage,
// which continues at the start of the text behind its end.
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
	first := c.passage(draw(r.key, nameWords))
	at := (first + int((r.from-nameWords)%uint64(len(c.lengths)))) % len(c.lengths)
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
