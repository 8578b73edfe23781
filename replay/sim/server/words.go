package server

import (
	"math/bits"
	"slices"
	"strings"

	"moontide/replay/sim/engine"
)

// words lists the words of responses. Each is a token, with a space before it.
var words = strings.Fields("a all am an and any are as at be but by can day did do end far few for get go had has he her him his how if in is " +
	"it its just kind let like long made many may me more my no not now of on one or our out she so that the then they this to we you")

// wordTokens is the encoder of a server without a tokenizer: each word is a token.
func wordTokens(dst []uint32, text string) ([]uint32, error) {
	for word := range strings.FieldsSeq(text) {
		dst = append(dst, uint32(engine.WordToken(word)))
	}
	return dst, nil
}

// lexicon holds the words of a server's responses in the order in which responses visit
// them. Their number is a power of two.
type lexicon struct {
	words  []string
	tokens []uint32 // the words as prompt tokens
	text   string   // of all words; events that repeat the text so far copy it from here
	start  []int    // of each word in text, and its end
}

// lexiconOf returns the words that an encoder makes one token each, alone and in a text,
// so that a response in a later prompt has the tokens that were generated. It returns all
// words, as plain tokens, if there are fewer than two.
func lexiconOf(encode Encoder) *lexicon {
	l := &lexicon{start: []int{0}}
	for _, word := range words {
		if ids, err := encode(nil, " "+word); err == nil && len(ids) == 1 && !slices.Contains(l.tokens, ids[0]) {
			l.words, l.tokens = append(l.words, " "+word), append(l.tokens, ids[0])
		}
	}
	n := 1 << bits.Len(uint(len(l.words))) >> 1
	l.words, l.tokens = l.words[:n], l.tokens[:n]
	for _, word := range l.words {
		l.text += word
		l.start = append(l.start, len(l.text))
	}
	if ids, err := encode(nil, l.text+l.text); n < 2 || err != nil || !slices.Equal(ids, slices.Concat(l.tokens, l.tokens)) {
		return lexiconOf(wordTokens)
	}
	return l
}

// wording determines the words of a response: they go round the lexicon, from the start
// for its reasoning, and from the next word for the visible text. Else a prompt without the
// reasoning could find the visible text in the cache, if it began as the reasoning does.
type wording struct {
	*lexicon
	first   uint64 // place of the first word
	visible int    // first token of the visible text, math.MaxInt without reasoning
}

// place returns the place in the lexicon of the word of token k.
func (w *wording) place(k int) int {
	if k >= w.visible {
		k -= w.visible - 1
	}
	return int((w.first + uint64(k)) & uint64(len(w.words)-1))
}

func (w *wording) word(k int) string  { return w.words[w.place(k)] }
func (w *wording) token(k int) uint64 { return uint64(w.tokens[w.place(k)]) }

// appendWords appends the text of the tokens from..end.
func (w *wording) appendWords(b []byte, from, end int) []byte {
	for from < end {
		at := w.place(from)
		n := min(end-from, len(w.words)-at)
		if from < w.visible {
			n = min(n, w.visible-from)
		}
		b = append(b, w.text[w.start[at]:w.start[at+n]]...)
		from += n
	}
	return b
}
