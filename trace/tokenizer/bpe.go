package tokenizer

import (
	"hash/maphash"
	"math"
	"math/bits"
	"sync"

	"golang.org/x/text/unicode/norm"
)

// bpe is the model. The bytes of a word are its first tokens. Then the pair of
// neighbours with the lowest rank, the leftmost first, is merged until no pair is
// in the list of merges.
type bpe struct {
	bytes  [256]uint32       // the token of each byte
	merges map[pair]merged   // by neighbours
	whole  map[string]uint32 // words that are one token
}

// pair is two neighbouring tokens.
type pair struct{ left, right uint32 }

// merged is the result of a merge. Merges with a lower rank come first.
type merged struct{ rank, id uint32 }

// encoding is a call of Append. Its memory is used again by later calls.
type encoding struct {
	*Tokenizer
	tokens []uint32
	// recent has words of this call that were merged, which often recur. It is
	// cleared after the call: texts are private.
	recent [256]recentWord

	// Memory of merge: the symbols of a word, what each and the next one merge to, their
	// neighbours, and a tree of ranks.
	symbols, next []uint32
	links         []neighbours
	tree          []uint64
}

// recentWord is a word and where in the tokens of a call its own are.
type recentWord struct {
	word     string
	from, to int
}

// neighbours are those of a symbol: -1 and the number of symbols at the ends.
type neighbours struct{ before, after int }

var (
	encodings = sync.Pool{New: func() any { return new(encoding) }}
	seed      = maphash.MakeSeed()
)

// appendExact appends the tokens of text.
func (e *encoding) appendExact(text string) error {
	return e.appendAdded(&e.exact, text, (*encoding).appendNormalized)
}

// appendNormalized appends the tokens of text without exact added tokens.
func (e *encoding) appendNormalized(text string) error {
	if e.nfc {
		text = norm.NFC.String(text)
	}
	return e.appendAdded(&e.normalized, text, (*encoding).appendWords)
}

// appendWords appends the tokens of text without added tokens.
func (e *encoding) appendWords(text string) error { return e.appendSplit(text, e.splits) }

// appendSplit splits text by each of the splits in turn and appends the tokens of
// the words.
func (e *encoding) appendSplit(text string, splits []splitter) error {
	if len(splits) == 0 {
		e.appendWord(text)
		return nil
	}
	return splits[0].split(text, func(word string) error { return e.appendSplit(word, splits[1:]) })
}

// appendWord appends the tokens of a word.
func (e *encoding) appendWord(word string) {
	if id, ok := e.model.whole[word]; ok {
		e.tokens = append(e.tokens, id)
		return
	}
	known := &e.recent[maphash.String(seed, word)%uint64(len(e.recent))]
	if known.word == word {
		e.tokens = append(e.tokens, e.tokens[known.from:known.to]...)
		return
	}
	from := len(e.tokens)
	e.merge(&e.model, word)
	*known = recentWord{word, from, len(e.tokens)}
}

// none is the rank of a pair without a merge, in the tree.
const none = math.MaxUint32 << 32

// merge appends the tokens of a word that is not empty. It takes time n log n for n bytes:
// the leaves of the tree have the rank of the merge of each symbol with the next one,
// above the number of the symbol, and a node has the minimum of the two below it.
func (e *encoding) merge(m *bpe, word string) {
	n := len(word)
	leaf := 1 << bits.Len(uint(n))
	e.symbols, e.next = resized(e.symbols, n), resized(e.next, n)
	e.links, e.tree = resized(e.links, n), resized(e.tree, 2*leaf)
	symbols, next, links, tree := e.symbols, e.next, e.links, e.tree
	for i := range n {
		symbols[i], links[i] = m.bytes[word[i]], neighbours{i - 1, i + 1}
	}
	rankOf := func(i int) uint64 {
		if links[i].after == n {
			return none
		}
		to, ok := m.merges[pair{symbols[i], symbols[links[i].after]}]
		if !ok {
			return none
		}
		next[i] = to.id
		return uint64(to.rank)<<32 | uint64(i)
	}
	for i := range leaf {
		tree[leaf+i] = none
		if i < n {
			tree[leaf+i] = rankOf(i)
		}
	}
	for i := leaf - 1; i > 0; i-- {
		tree[i] = min(tree[2*i], tree[2*i+1])
	}
	set := func(i int, rank uint64) {
		i += leaf
		for tree[i] = rank; i > 1; i /= 2 {
			tree[i/2] = min(tree[i], tree[i^1])
		}
	}
	for tree[1] < none {
		i := int(tree[1] & math.MaxUint32)
		symbols[i] = next[i]
		gone := links[i].after
		links[i].after = links[gone].after
		if after := links[i].after; after < n {
			links[after].before = i
		}
		set(gone, none)
		set(i, rankOf(i))
		if before := links[i].before; before >= 0 {
			set(before, rankOf(before))
		}
	}
	for i := 0; i < n; i = links[i].after {
		e.tokens = append(e.tokens, symbols[i])
	}
}

// resized returns a slice of a length, with any contents.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// mostKept bounds the bytes of a word whose memory is kept for later calls.
const mostKept = 1 << 16

// encode appends the tokens of a valid text to dst.
func (t *Tokenizer) encode(dst []uint32, text string) ([]uint32, error) {
	e := encodings.Get().(*encoding)
	e.Tokenizer, e.tokens = t, dst
	err := e.appendExact(text)
	tokens := e.tokens
	if cap(e.symbols) <= mostKept {
		clear(e.recent[:])
		clear(e.symbols[:cap(e.symbols)]) // they are the text, too
		clear(e.next[:cap(e.next)])
		e.Tokenizer, e.tokens = nil, nil
		encodings.Put(e)
	}
	return tokens, err
}
