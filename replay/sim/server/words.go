package server

import (
	"math/bits"
	"slices"

	"moontide/replay/sim/engine"
)

// words lists the words of answers. Each is a token.
var words = [...]string{
	" a", " all", " am", " an", " and", " any", " are", " as",
	" at", " be", " but", " by", " can", " day", " did", " do",
	" end", " far", " few", " for", " get", " go", " had", " has",
	" he", " her", " him", " his", " how", " if", " in", " is",
	" it", " its", " just", " kind", " let", " like", " long", " made",
	" many", " may", " me", " more", " my", " no", " not", " now",
	" of", " on", " one", " or", " our", " out", " she", " so",
	" that", " the", " then", " they", " this", " to", " we", " you",
}

// lexicon holds the words of a server's answers in the order in which answers visit
// them. Their number is a power of two.
type lexicon struct {
	words  []string
	tokens []uint64 // the words as prompt tokens
	text   string   // of all words; events that repeat the text so far copy it from here
	start  []int    // of each word in text, and its end
}

// plainWords are the words of a server that has no tokenizer.
var plainWords = newLexicon(words[:], func(word string) (uint64, bool) { return engine.WordToken(word[1:]), true })

// newLexicon returns the words that are one token.
func newLexicon(words []string, tokenOf func(word string) (token uint64, ok bool)) *lexicon {
	l := &lexicon{start: []int{0}}
	for _, word := range words {
		if token, ok := tokenOf(word); ok && !slices.Contains(l.tokens, token) {
			l.words, l.tokens = append(l.words, word), append(l.tokens, token)
		}
	}
	n := 1 << bits.Len(uint(len(l.words))) >> 1
	l.words, l.tokens = l.words[:n], l.tokens[:n]
	for _, word := range l.words {
		l.text += word
		l.start = append(l.start, len(l.text))
	}
	return l
}

// lexiconOf returns the words that an encoder makes one token each, alone and in a text,
// so that an answer in a later prompt has the tokens that were generated. It returns
// plainWords if there are fewer than two.
func lexiconOf(encode Encoder) *lexicon {
	if encode == nil {
		return plainWords
	}
	l := newLexicon(words[:], func(word string) (uint64, bool) {
		ids, err := encode(nil, word)
		if err != nil || len(ids) != 1 {
			return 0, false
		}
		return uint64(ids[0]), true
	})
	ids, err := encode(nil, l.text+l.text)
	again := slices.EqualFunc(ids, slices.Concat(l.tokens, l.tokens), func(id uint32, token uint64) bool { return uint64(id) == token })
	if err != nil || !again || len(l.words) < 2 {
		return plainWords
	}
	return l
}

// wording determines the words of an answer: they go round the lexicon.
type wording struct {
	*lexicon
	first uint64 // place of the first word
	// From token turn on, words are skip places further: else, after whole rounds of
	// reasoning, the visible text would begin as the reasoning does, and a prompt
	// without the reasoning would find it in the cache.
	turn, skip int
}

func (l *lexicon) wording(seed uint64, reasoning int) wording {
	w := wording{lexicon: l, first: seed}
	if reasoning > 0 && reasoning%len(l.words) == 0 {
		w.turn, w.skip = reasoning, 1
	}
	return w
}

// place returns the place in the lexicon of the word of token k.
func (w *wording) place(k int) int {
	if k >= w.turn {
		k += w.skip
	}
	return int((w.first + uint64(k)) & uint64(len(w.words)-1))
}

func (w *wording) word(k int) string  { return w.words[w.place(k)] }
func (w *wording) token(k int) uint64 { return w.tokens[w.place(k)] }

// appendWords appends the text of the tokens from..end.
func (w *wording) appendWords(b []byte, from, end int) []byte {
	for from < end {
		at := w.place(from)
		n := min(end-from, len(w.words)-at)
		if from < w.turn {
			n = min(n, w.turn-from)
		}
		b = append(b, w.text[w.start[at]:w.start[at+n]]...)
		from += n
	}
	return b
}

// lengthLimits holds the limits of an answer's length in tokens.
type lengthLimits struct {
	maxTokens int // values below 1 mean 1
	minTokens int // maxTokens takes precedence
	// ignoreEOS makes the answer exactly maxTokens long. Otherwise the model
	// ends it after 16 to 512 tokens, as a pure function of the prompt.
	ignoreEOS bool
}

// length returns the answer length for the prompt with the given hash, and whether that
// is the most that was asked for.
func (l lengthLimits) length(prompt uint64) (tokens int, full bool) {
	const shortest, longest = 16, 512
	most := max(l.maxTokens, 1)
	natural := max(l.minTokens, shortest+int(prompt%(longest-shortest+1)))
	if l.ignoreEOS || natural > most {
		return most, true
	}
	return natural, false
}
