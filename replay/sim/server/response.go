package server

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"moontide/replay/sim/engine"
)

// response is a response to a client, written in the forms of its API.
type response struct {
	api     *api
	id      string // without the API's prefix
	created int64  // Unix time in seconds
	model   string // quoted
	wording
	tokens    int  // generated
	full      bool // as long as asked for
	reasoning int  // number of tokens of reasoning, before the visible text
	options
	stamped bool // each event has the time of its writing

	// What the next event, or the whole response, is about.
	promptTokens, cachedTokens int // known from the first token on
	part                       part
	bound                      form  // of the tokens of the part, but the last one of the response
	counted                    form  // the usage after each token
	from, upTo                 int   // tokens
	stamp                      int64 // see Server.stamp
	sequence                   int   // events so far, if they are counted
	failure                    *apiError
}

// part is a part of a response: its reasoning or its visible text.
type part struct {
	*partForms
	index      int // in the response
	from, upTo int // tokens
}

// partOf returns the part that token k belongs to.
func (r *response) partOf(k int) part {
	switch {
	case k < r.reasoning:
		return part{&r.api.reasoning, 0, 0, r.reasoning}
	case r.reasoning > 0:
		return part{&r.api.text, 1, r.reasoning, r.tokens}
	}
	return part{&r.api.text, 0, 0, r.tokens}
}

// reasoned returns the number of tokens of reasoning so far.
func (r *response) reasoned() int { return min(r.upTo, r.reasoning) }

// finish returns why the response ended, or that it has not.
func (r *response) finish() form {
	switch {
	case r.upTo < r.tokens:
		return r.api.running
	case r.full:
		return r.api.length
	}
	return r.api.stop
}

// appendIDs appends the ids of the tokens from..upTo, separated by commas.
func (r *response) appendIDs(b []byte) []byte {
	for k := r.from; k < r.upTo; k++ {
		if k > r.from {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, r.wording.token(k), 10)
	}
	return b
}

// appendToken appends the events of token k, including those that open the response or a
// part.
func (r *response) appendToken(b []byte, k int) []byte {
	if k == r.part.upTo {
		b = r.openPart(b, k)
	}
	r.from, r.upTo = k, k+1
	if r.upTo == r.tokens {
		return r.part.token.append(b, r)
	}
	f := r.bound
	if !f[0].word {
		return f.append(b, r)
	}
	b = append(append(b, f[0].text...), r.word(k)...) // a call of the field takes longer
	if len(f) == 2 {
		return append(b, f[1].text...)
	}
	return f[1:].append(b, r)
}

// openPart appends the events before token k, the first one of a part.
func (r *response) openPart(b []byte, k int) []byte {
	if k == 0 {
		if r.continuousUsage {
			r.counted = r.api.usage.bind(r)
		}
		b = r.api.begun.append(b, r)
	} else {
		b = r.closePart(b)
	}
	r.part = r.partOf(k)
	r.bound = r.part.token.bind(r)
	return r.part.opened.append(b, r)
}

// closePart appends the events after the last token of a part.
func (r *response) closePart(b []byte) []byte {
	r.from, r.upTo = r.part.from, r.part.upTo
	return r.part.closed.append(b, r)
}

// appendEnd appends the end of the stream, after the last token.
func (r *response) appendEnd(b []byte) []byte {
	b = r.closePart(b)
	r.from, r.upTo = 0, r.tokens
	if r.includeUsage {
		b = r.api.usageEvent.append(b, r)
	}
	return r.api.ended.append(b, r)
}

// appendParts appends all parts of a response. There is no visible text if all tokens are
// reasoning.
func (r *response) appendParts(b []byte) []byte {
	for k := 0; k < r.tokens; k = r.upTo {
		if k > 0 {
			b = append(b, ',')
		}
		r.part = r.partOf(k)
		r.from, r.upTo = r.part.from, r.part.upTo
		b = r.part.whole.append(b, r)
	}
	r.from, r.upTo = 0, r.tokens
	return b
}

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
