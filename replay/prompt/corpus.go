package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"math/bits"
	"slices"
	"strings"
)

// A Corpus is text to take prompts from, cut into tokens. It is immutable: any
// number of goroutines may use it at once.
//
// It consists of words, each with one space before it, and of their tokens,
// such that the text may be cut behind any token and still be encoded to those
// before the cut, whatever word comes next. A text that is put together from
// such pieces has exactly the tokens of the pieces.
type Corpus struct {
	text    []byte  // as it stands in a JSON string
	lengths []uint8 // of the tokens, in bytes
	places  []uint32
	words   *wordTable
	stats   CorpusStats
	sum     string
}

// CorpusStats say what was made of a dataset.
type CorpusStats struct {
	Tokens  int  // of the text that is used
	Words   int  // of the dataset, as far as it was read
	LeftOut int  // words that cannot be cut behind each of their tokens
	Partial bool // the dataset has more text than is used
}

// Stats say what was made of the dataset.
func (c *Corpus) Stats() CorpusStats { return c.stats }

// SHA256 is a digest of the text and its tokens, in hexadecimal. Equal ones
// make equal prompts.
func (c *Corpus) SHA256() string { return c.sum }

const (
	// nameWords are the words that a block begins with. They are drawn, and
	// tell blocks apart that take the same passage: two of a million blocks
	// that have the same ones, and a passage that begins at the same word, are
	// not to be expected.
	nameWords = 4
	// perPlace is how many tokens apart places are noted.
	perPlace = 64
)

// finish makes what is derived of the text and its tokens.
func (c *Corpus) finish() {
	at := 0
	for i, n := range c.lengths {
		if i%perPlace == 0 {
			c.places = append(c.places, uint32(at))
		}
		at += int(n)
	}
	hash := sha256.New()
	hash.Write(c.text)
	hash.Write(c.lengths)
	c.sum = hex.EncodeToString(hash.Sum(nil))
	c.stats.Tokens = len(c.lengths)
}

// place is where token i begins. There may be one behind the last.
func (c *Corpus) place(i int) int {
	if i == len(c.lengths) {
		return len(c.text)
	}
	at := int(c.places[i/perPlace])
	for _, n := range c.lengths[i-i%perPlace : i] {
		at += int(n)
	}
	return at
}

// passage is the first token of the passage that a draw stands for: one that
// begins a word.
func (c *Corpus) passage(draw uint64) int {
	hi, _ := bits.Mul64(draw, uint64(len(c.lengths)))
	i := int(hi)
	for at := c.place(i); c.text[at] != ' '; i++ {
		at += int(c.lengths[i])
		if at == len(c.text) {
			return 0
		}
	}
	return i
}

// appendRun appends the tokens of a run: the name of its key, and then the
// passage of it, which goes on at the beginning where the text ends.
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
		dst = append(dst, c.text[c.place(at):c.place(at+taken)]...)
		n -= taken
		at = 0
	}
	return dst
}

// appendEscaped appends text as it stands in a JSON string. It has no control
// characters.
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

// isControl reports whether text has a character that cannot stand in a JSON
// string as it is, or a byte that is no UTF-8.
func isControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' })
}
