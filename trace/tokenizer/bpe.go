package tokenizer

import (
	"math"
	"math/bits"
	"unicode/utf8"
)

// bpe is the model. The bytes of a word are its first tokens. Then the pair of
// neighbours with the lowest rank, the leftmost first, is merged until no pair is
// in the list of merges.
type bpe struct {
	bytes  [256]uint32           // the token of each byte
	chars  []char                // up to U+FFFF; nil before they are known
	merges table[uint64, merged] // by pair
	whole  table[word, uint32]   // short words that are one token
	long   map[string]uint32     // longer words that are one token
}

// merged is the result of a merge. Merges with a lower rank come first.
type merged struct{ rank, id uint32 }

const noRank = math.MaxUint32

// pair is a key of merges, never zero.
func pair(left, right uint32) uint64 { return 1<<63 | uint64(left)<<32 | uint64(right) }

func (m *bpe) setMerge(left, right uint32, to merged) {
	p := pair(left, right)
	*m.merges.at(hash(p, 0), p) = slot[uint64, merged]{p, to}
}

// mergeOf returns the merge of a pair, of noRank if there is none.
func (m *bpe) mergeOf(p uint64) merged {
	if s := m.merges.at(hash(p, 0), p); s.key != 0 {
		return s.value
	}
	return merged{rank: noRank}
}

// shortWord is the maximum number of symbols of words that are merged in quadratic
// time, which is fastest for usual words.
const shortWord = 64

// appendLong appends the tokens of a word of more than maxWord bytes.
func (m *bpe) appendLong(dst []uint32, word string) []uint32 {
	if id, ok := m.long[word]; ok {
		return append(dst, id)
	}
	return m.merge(dst, word)
}

// char is the token of a character, after flags for the neighbours with some of which
// its bytes may be merged before they are merged with each other. Without such a
// neighbour, merging may begin with the character.
type char uint32

const (
	notAfter char = 1 << iota // ASCII; the next flag is for other characters
	_
	notBefore // the same
	_
	charFlags = iota
	noChar    = ^char(0)
)

// wide returns 1 for bytes that are not ASCII.
func wide(b byte) int { return int(b >> 7) }

// charAt returns the token and the size of the character at an offset of a word if
// merging may begin with it, otherwise those of its first byte.
func (m *bpe) charAt(word string, at int) (id uint32, size int) {
	r, size := utf8.DecodeRuneInString(word[at:])
	if size == 1 || int(r) >= len(m.chars) {
		return m.bytes[word[at]], 1
	}
	c, not := m.chars[r], char(0)
	if at > 0 {
		not |= notAfter << wide(word[at-1])
	}
	if at+size < len(word) {
		not |= notBefore << wide(word[at+size])
	}
	if c&not != 0 || c == noChar {
		return m.bytes[word[at]], 1
	}
	return uint32(c >> charFlags), size
}

// begin sets symbols to those with which the merging of a word begins, and returns their
// number, or -1 if there is no space for them.
func (m *bpe) begin(symbols []uint32, word string) (n int) {
	for at := 0; at < len(word); n++ {
		if n == len(symbols) {
			return -1
		}
		id, size := m.bytes[word[at]], 1
		if word[at] >= utf8.RuneSelf {
			id, size = m.charAt(word, at)
		}
		symbols[n] = id
		at += size
	}
	return n
}

func (m *bpe) merge(dst []uint32, word string) []uint32 {
	var symbols [shortWord]uint32
	var next [shortWord]merged // merge of each symbol with the next one
	n := m.begin(symbols[:], word)
	if n < 0 {
		return m.mergeLong(dst, word)
	}
	for i := range n {
		next[i] = m.mergeAt(symbols[:n], i)
	}
	for {
		best := 0
		for i := 1; i < n; i++ {
			if next[i].rank < next[best].rank {
				best = i
			}
		}
		if n < 2 || next[best].rank == noRank {
			return append(dst, symbols[:n]...)
		}
		symbols[best] = next[best].id
		copy(symbols[best+1:n], symbols[best+2:n])
		copy(next[best+1:n], next[best+2:n])
		n--
		next[best] = m.mergeAt(symbols[:n], best)
		if best > 0 {
			next[best-1] = m.mergeAt(symbols[:n], best-1)
		}
	}
}

// mergeAt returns the merge of symbol i with the next one.
func (m *bpe) mergeAt(symbols []uint32, i int) merged {
	if i+1 < len(symbols) {
		return m.mergeOf(pair(symbols[i], symbols[i+1]))
	}
	return merged{rank: noRank}
}

// mergeLong merges words of any length in time n log n.
func (m *bpe) mergeLong(dst []uint32, word string) []uint32 {
	symbols := make([]uint32, len(word))
	n := m.begin(symbols, word)
	links := make([]struct{ before, after int }, n) // neighbours; -1 and n at the ends
	next := make([]uint32, n)                       // what each symbol and the next one merge to
	leaf := 1 << bits.Len(uint(n))
	const none = noRank << 32
	tree := make([]uint64, 2*leaf) // ranks and symbols; node i is the minimum of 2*i and 2*i+1
	for i := range tree {
		tree[i] = none
	}
	look := func(i int) uint64 {
		if links[i].after == n {
			return none
		}
		to := m.mergeOf(pair(symbols[i], symbols[links[i].after]))
		next[i] = to.id
		return uint64(to.rank)<<32 | uint64(i)
	}
	for i := range links {
		links[i].before, links[i].after = i-1, i+1
		tree[leaf+i] = look(i)
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
		set(i, look(i))
		if before := links[i].before; before >= 0 {
			set(before, look(before))
		}
	}
	for i := 0; i < n; i = links[i].after {
		dst = append(dst, symbols[i])
	}
	return dst
}
