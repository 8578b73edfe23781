package tokenizer

import (
	"container/heap"
	"math"
)

// bpe is the model: the bytes of a word are tokens at first, and then the pair
// of neighbours that stands first in the list of merges becomes one, again and
// again, the leftmost first, until no pair is in the list.
type bpe struct {
	bytes  [256]uint32       // the token of each byte
	merges map[uint64]merged // by pair
	whole  map[string]uint32 // words that are known to be one token
}

// merged is what a pair becomes. Of two pairs the one of the lower rank goes
// first.
type merged struct{ rank, id uint32 }

const noRank = math.MaxUint32

func pair(left, right uint32) uint64 { return uint64(left)<<32 | uint64(right) }

// shortWord is up to how many bytes a word is merged by going over it anew for
// every merge, which for the words of a text is quickest.
const shortWord = 64

func (m *bpe) append(dst []uint32, word string) []uint32 {
	if id, ok := m.whole[word]; ok {
		return append(dst, id)
	}
	return m.merge(dst, word)
}

func (m *bpe) merge(dst []uint32, word string) []uint32 {
	if len(word) > shortWord {
		return m.mergeLong(dst, word)
	}
	var symbols [shortWord]uint32
	var next [shortWord]merged // what each symbol and the one behind it become
	n := len(word)
	for i := range n {
		symbols[i] = m.bytes[word[i]]
	}
	for i := range n {
		next[i] = m.behind(symbols[:n], i)
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
		next[best] = m.behind(symbols[:n], best)
		if best > 0 {
			next[best-1] = m.behind(symbols[:n], best-1)
		}
	}
}

// behind is what symbol i becomes with the one behind it.
func (m *bpe) behind(symbols []uint32, i int) merged {
	if i+1 < len(symbols) {
		if to, ok := m.merges[pair(symbols[i], symbols[i+1])]; ok {
			return to
		}
	}
	return merged{rank: noRank}
}

// mergeLong is merge for words of any length, in time n log n.
func (m *bpe) mergeLong(dst []uint32, word string) []uint32 {
	symbols := make([]linked, len(word))
	for i := range symbols {
		symbols[i] = linked{id: m.bytes[word[i]], before: i - 1, behind: i + 1}
	}
	symbols[len(word)-1].behind = -1
	var queue candidates
	consider := func(at int) {
		if at < 0 || symbols[at].behind < 0 {
			return
		}
		p := pair(symbols[at].id, symbols[symbols[at].behind].id)
		if to, ok := m.merges[p]; ok {
			heap.Push(&queue, candidate{to, p, at})
		}
	}
	for i := range symbols {
		consider(i)
	}
	for len(queue) > 0 {
		c := heap.Pop(&queue).(candidate)
		left := &symbols[c.at]
		if left.gone || left.behind < 0 || pair(left.id, symbols[left.behind].id) != c.pair {
			continue // another merge came first
		}
		right := &symbols[left.behind]
		right.gone = true
		left.id, left.behind = c.id, right.behind
		if left.behind >= 0 {
			symbols[left.behind].before = c.at
		}
		consider(left.before)
		consider(c.at)
	}
	for at := 0; at >= 0; at = symbols[at].behind {
		dst = append(dst, symbols[at].id)
	}
	return dst
}

// linked is a symbol of a long word.
type linked struct {
	id             uint32
	before, behind int // its neighbours, -1 at the ends
	gone           bool
}

// candidate is a merge that was possible when it was found.
type candidate struct {
	merged
	pair uint64
	at   int
}

// candidates is a heap.Interface: the lowest rank first, of these the leftmost.
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
