package cache

import "math/bits"

// holders tracks which workers have each block cached, as one bit set per block.
type holders struct {
	words int      // of a set
	sets  []uint64 // of all blocks
	// cached is the result of lookUp; before and after are its working sets.
	cached        []int
	before, after []uint64
}

// newHolders tracks empty caches of blocks numbered below distinct.
func newHolders(distinct int, caches []*lru) *holders {
	words := (len(caches) + 63) / 64
	h := &holders{
		words:  words,
		sets:   make([]uint64, distinct*words),
		cached: make([]int, len(caches)),
		before: make([]uint64, words),
		after:  make([]uint64, words),
	}
	for w, c := range caches {
		word, bit := w/64, uint64(1)<<(w%64)
		c.inserted = func(number uint32) { h.of(number)[word] |= bit }
		c.evicted = func(number uint32) { h.of(number)[word] &^= bit }
	}
	return h
}

// of returns the set of workers that have a block cached.
func (h *holders) of(number uint32) []uint64 {
	return h.sets[int(number)*h.words : (int(number)+1)*h.words]
}

// lookUp returns the number of leading blocks that each worker has cached, valid
// until the next call. It intersects the sets of the blocks one by one and updates
// a worker only when it drops out.
func (h *holders) lookUp(blocks []uint32) []int {
	clear(h.cached)
	for w := range h.cached {
		h.before[w/64] |= 1 << (w % 64)
	}
	for i, number := range blocks {
		left := uint64(0)
		for word, set := range h.of(number) {
			h.after[word] = h.before[word] & set
			left |= h.after[word]
			h.note(word, h.before[word]&^set, i)
		}
		h.before, h.after = h.after, h.before
		if left == 0 {
			break
		}
	}
	for word, set := range h.before {
		h.note(word, set, len(blocks))
		h.before[word] = 0
	}
	return h.cached
}

// note records the prefix of the workers in one word of a set.
func (h *holders) note(word int, set uint64, blocks int) {
	for ; set != 0; set &= set - 1 {
		h.cached[word*64+bits.TrailingZeros64(set)] = blocks
	}
}
