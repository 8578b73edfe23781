package cache

import "math/bits"

// prefixRouter picks workers by what they have cached. It knows the holders of
// each block as a set of bits, so that the workers with the longest prefix are
// those that remain when the sets of its blocks are intersected one by one.
type prefixRouter struct {
	given   []Hits
	words   int      // of the set of workers of a block
	holders []uint64 // the sets of all blocks
	// candidates and narrowed are sets for pick to work in.
	candidates, narrowed []uint64
	blocks               int // given to all workers together
}

// newPrefixRouter makes a router that follows caches, which are empty.
func newPrefixRouter(distinct int, given []Hits, caches []*lru) *prefixRouter {
	words := (len(caches) + 63) / 64
	r := &prefixRouter{
		given:      given,
		words:      words,
		holders:    make([]uint64, distinct*words),
		candidates: make([]uint64, words),
		narrowed:   make([]uint64, words),
	}
	for w, c := range caches {
		word, bit := w/64, uint64(1)<<(w%64)
		c.inserted = func(number uint32) { r.of(number)[word] |= bit }
		c.evicted = func(number uint32) { r.of(number)[word] &^= bit }
	}
	return r
}

// of is the set of workers that hold a block.
func (r *prefixRouter) of(number uint32) []uint64 {
	return r.holders[int(number)*r.words : (int(number)+1)*r.words]
}

func (r *prefixRouter) pick(blocks []uint32) int {
	bound := loadBound * float64(r.blocks) / float64(len(r.given))
	clear(r.candidates)
	for w, given := range r.given {
		if float64(given.Blocks) <= bound { // true of the least loaded, always
			r.candidates[w/64] |= 1 << (w % 64)
		}
	}
	for _, number := range blocks {
		any := uint64(0)
		for i, holders := range r.of(number) {
			r.narrowed[i] = r.candidates[i] & holders
			any |= r.narrowed[i]
		}
		if any == 0 {
			break
		}
		r.candidates, r.narrowed = r.narrowed, r.candidates
	}
	r.blocks += len(blocks)
	return r.leastLoaded()
}

// leastLoaded is the candidate that was given the fewest blocks, the first of
// several.
func (r *prefixRouter) leastLoaded() int {
	least := -1
	for i, word := range r.candidates {
		for ; word != 0; word &= word - 1 {
			w := i*64 + bits.TrailingZeros64(word)
			if least < 0 || r.given[w].Blocks < r.given[least].Blocks {
				least = w
			}
		}
	}
	return least
}
