package cache

import (
	"math/bits"
	"slices"
)

// never is the next use of a block that is not used again.
const never = none

// nextUses returns, for each reference, the index of the next one to the same
// block.
func nextUses(s *Sequence) []uint32 {
	next := make([]uint32, len(s.numbers))
	seen := slices.Repeat([]uint32{never}, s.distinct)
	for i, number := range slices.Backward(s.numbers) {
		next[i] = seen[number]
		seen[number] = uint32(i)
	}
	return next
}

// RoomForReuse is the number of blocks that hold everything that is still to be
// reused: the most that are at one time to be used again, with the one in use.
// A cache of this size that knows the future misses nothing but the first use
// of each block. ([Belady] may need one block less, for it need not let in a
// block that is never used again; a serving engine must.)
func RoomForReuse(s *Sequence) int {
	room, now := 0, 0
	seen := make([]bool, s.distinct)
	for i, next := range nextUses(s) {
		number := s.numbers[i]
		if !seen[number] {
			now++
			seen[number] = true
		}
		room = max(room, now)
		if next == never {
			now--
		}
	}
	return room
}

// simulateBelady needs no blocks at all: a cache is the set of the references
// at which what it holds will be used next. A reference hits if it is in the
// set, and gives its place to the block's next use; what is used last leaves.
func simulateBelady(s *Sequence, blockSize int, capacities []int) []Hits {
	next := nextUses(s)
	all := make([]Hits, len(capacities))
	for i, capacity := range capacities {
		all[i] = belady(s, next, blockSize, capacity)
	}
	return all
}

func belady(s *Sequence, next []uint32, blockSize, capacity int) Hits {
	var h Hits
	held, size := newBitSet(len(next)), 0
	now := 0
	for _, r := range s.requests {
		start, hit, tokens := now, 0, 0
		for ; now < r.end; now++ {
			if held.has(now) {
				held.remove(now)
				size--
				hit++
				tokens += min((now-start+1)*blockSize, r.isl) - min((now-start)*blockSize, r.isl)
			}
			if next[now] == never {
				continue
			}
			held.add(int(next[now]))
			if size++; size > capacity {
				held.remove(held.largest())
				size--
			}
		}
		h.addCounted(hit, tokens, r.end-start, r.isl)
	}
	return h
}

// bitSet is a set of numbers below a limit that knows its largest: bits, bits
// for the words of bits that are not 0, and so on up to a single word. It is a
// van Emde Boas tree as machines like it.
type bitSet struct{ levels [][]uint64 }

func newBitSet(limit int) bitSet {
	var s bitSet
	for {
		limit = limit/64 + 1
		s.levels = append(s.levels, make([]uint64, limit))
		if limit == 1 {
			return s
		}
	}
}

func (s bitSet) has(i int) bool { return s.levels[0][i/64]>>(i%64)&1 != 0 }

func (s bitSet) add(i int) {
	for _, level := range s.levels {
		known := level[i/64] != 0
		level[i/64] |= 1 << (i % 64)
		if known {
			return
		}
		i /= 64
	}
}

func (s bitSet) remove(i int) {
	for _, level := range s.levels {
		level[i/64] &^= 1 << (i % 64)
		if level[i/64] != 0 {
			return
		}
		i /= 64
	}
}

// largest is the largest number of a set that is not empty.
func (s bitSet) largest() int {
	i := 0
	for _, level := range slices.Backward(s.levels) {
		i = i*64 + bits.Len64(level[i]) - 1
	}
	return i
}
