package tokenizer

import (
	"math/bits"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"
)

// encoding is a call of Append.
type encoding struct {
	*Tokenizer
	tokens []uint32
	// recent has words of this call that were merged, which often recur. It is
	// cleared after the call: texts are private.
	recent []recentWord
}

// recentWord is a word and where in the tokens of a call its own are.
type recentWord struct {
	word
	from, to int
}

// maxRecent is the maximum number of recent words, which use 128 KB.
const maxRecent = 4 << 10

var encodings = sync.Pool{New: func() any { return &encoding{recent: make([]recentWord, 0, maxRecent)} }}

// begin returns the encoding of a text to tokens after dst. It must be ended.
func (t *Tokenizer) begin(dst []uint32, text string) *encoding {
	e := encodings.Get().(*encoding)
	e.Tokenizer, e.tokens = t, dst
	e.recent = e.recent[:min(1<<bits.Len(uint(len(text)/32)), maxRecent)]
	return e
}

func (e *encoding) end() {
	clear(e.recent)
	*e = encoding{recent: e.recent}
	encodings.Put(e)
}

// appendExact appends the tokens of text.
func (e *encoding) appendExact(text string) error {
	return e.appendAdded(&e.exact, text, (*encoding).appendNormalized)
}

// appendNormalized appends the tokens of text without exact added tokens.
func (e *encoding) appendNormalized(text string) error {
	if e.nfc && !surelyNFC(text) {
		text = norm.NFC.String(text)
	}
	return e.appendAdded(&e.normalized, text, (*encoding).appendWords)
}

// surelyNFC reports whether all characters are below U+0300, where the first
// combining mark is. Texts of such characters are in NFC.
func surelyNFC(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= 0x300 }) < 0
}

// appendWords appends the tokens of text without added tokens.
func (e *encoding) appendWords(text string) error { return e.appendSplit(text, e.splits) }

// appendSplit splits text by each of the splits in turn and appends the tokens of
// the words.
func (e *encoding) appendSplit(text string, splits []splitter) error {
	if len(splits) == 0 {
		e.appendWord(loadWord(text), text)
		return nil
	}
	if s, ok := splits[0].(*scanned); ok && len(splits) == 1 && s.simple != nil && !s.removed {
		e.appendScanned(text, s)
		return nil
	}
	return splits[0].split(text, func(word string) error { return e.appendSplit(word, splits[1:]) })
}

// appendScanned is appendSplit for one scanner of simple words.
func (e *encoding) appendScanned(text string, s *scanned) {
	for len(text) > 0 {
		w := loadWord(text)
		n := s.simpleWord(w)
		if n == 0 {
			n, _ = s.next(text)
		}
		e.appendWord(w, text[:n])
		text = text[n:]
	}
}

// appendWord appends the tokens of a word. first has at least its first bytes.
func (e *encoding) appendWord(first word, text string) {
	if len(text) > maxWord {
		e.tokens = e.model.appendLong(e.tokens, text)
		return
	}
	w := first.first(len(text))
	h := w.hash()
	if s := e.model.whole.at(h, w); s.key == w {
		e.tokens = append(e.tokens, s.value)
		return
	}
	r := &e.recent[h>>32&uint64(len(e.recent)-1)]
	if r.word == w {
		e.tokens = append(e.tokens, e.tokens[r.from:r.to]...)
		return
	}
	from := len(e.tokens)
	e.tokens = e.model.merge(e.tokens, text)
	*r = recentWord{w, from, len(e.tokens)}
}
