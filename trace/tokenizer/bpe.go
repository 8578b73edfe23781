package tokenizer

import (
	"container/heap"
	"math"
)

// bpe is the model. The bytes of a word are its first tokens. Then the pair of
// neighbours with the lowest rank, the leftmost first, is merged until no pair is
// in the list of merges.
type bpe struct {
	bytes  [256]uint32           // the token of each byte
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

// shortWord is the maximum length in bytes of words that are merged in quadratic
// time, which is fastest for usual words.
const shortWord = 64

// appendLong appends the tokens of a word of more than maxWord bytes.
func (m *bpe) appendLong(dst []uint32, word string) []uint32 {
	if id, ok := m.long[word]; ok {
		return append(dst, id)
	}
	return m.merge(dst, word)
}

func (m *bpe) merge(dst []uint32, word string) []uint32 {
	if len(word) > shortWord {
		return m.mergeLong(dst, word)
	}
	var symbols [shortWord]uint32
	var next [shortWord]merged // merge of each symbol with the next one
	n := len(word)
	for i := range n {
		symbols[i] = m.bytes[word[i]]
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
	symbols := make([]linked, len(word))
	for i := range symbols {
		symbols[i] = linked{id: m.bytes[word[i]], before: i - 1, after: i + 1}
	}
	symbols[len(word)-1].after = -1
	var queue candidates
	consider := func(at int) {
		if at < 0 || symbols[at].after < 0 {
			return
		}
		p := pair(symbols[at].id, symbols[symbols[at].after].id)
		if to := m.mergeOf(p); to.rank != noRank {
			heap.Push(&queue, candidate{to, p, at})
		}
	}
	for i := range symbols {
		consider(i)
	}
	for len(queue) > 0 {
		c := heap.Pop(&queue).(candidate)
		left := &symbols[c.at]
		if left.gone || left.after < 0 || pair(left.id, symbols[left.after].id) != c.pair {
			continue // another merge came first
		}
		right := &symbols[left.after]
		right.gone = true
		left.id, left.after = c.id, right.after
		if left.after >= 0 {
			symbols[left.after].before = c.at
		}
		consider(left.before)
		consider(c.at)
	}
	for at := 0; at >= 0; at = symbols[at].after {
		dst = append(dst, symbols[at].id)
	}
	return dst
}

// linked is a symbol of a long word.
type linked struct {
	id            uint32
	before, after int // its neighbours, -1 at the ends
	gone          bool
}

// candidate is a merge that was possible when it was queued.
type candidate struct {
	merged
	pair uint64
	at   int
}

// candidates is a heap of merges: the lowest rank first, then the leftmost.
type candidates []candidate

func (q candidates) Len() int { return len(q) }
func (q candidates) Less(i, j int) bool {
	if q[i].rank != q[j].rank {
		return q[i].rank < q[j].rank
	}
	return q[i].at < q[j].at
}
func (q candidates) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *candidates) Push(c any)   { *q = append(*q, c.(candidate)) }
func (q *candidates) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}
