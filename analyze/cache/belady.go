package cache

import (
	"math/bits"
	"slices"
)

// never is the next use of a block that is not used again.
const never = none

// nextUses returns, for each block use, the index of the next use of the block.
func nextUses(s *Sequence) []uint32 {
	next := make([]uint32, len(s.numbers))
	seen := slices.Repeat([]uint32{never}, s.distinct)
	for i, number := range slices.Backward(s.numbers) {
		next[i] = seen[number]
		seen[number] = uint32(i)
	}
	return next
}

// RoomForReuse returns the number of blocks needed to hold everything that will be
// reused, plus the block in use. A cache of this size with knowledge of the future
// misses only first uses.
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

// belady represents a cache as the set of the next uses of its blocks. A use hits if it
// is in the set, and is replaced by the block's next use; the last use in the set is
// evicted.
func belady(s *Sequence, next []uint32, blockSize, capacity int) Hits {
	var h Hits
	cached, size := newBitSet(len(next)), 0
	now := 0
	for _, r := range s.requests {
		start, hit, tokens := now, 0, 0
		for ; now < r.end; now++ {
			if cached.has(now) {
				cached.remove(now)
				size--
				hit++
				tokens += min((now-start+1)*blockSize, r.isl) - min((now-start)*blockSize, r.isl)
			}
			if next[now] == never {
				continue
			}
			cached.add(int(next[now]))
			if size++; size > capacity {
				cached.remove(cached.largest())
				size--
			}
		}
		h.add(requestHits(hit, tokens, r.end-start, r.isl))
	}
	return h
}

// bitSet is a set of numbers below a limit that finds its largest quickly: the
// first level has a bit per number, each next one a bit per non-zero word of the
// level before (a van Emde Boas tree in machine words).
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

// largest returns the largest number of a non-empty set.
func (s bitSet) largest() int {
	i := 0
	for _, level := range slices.Backward(s.levels) {
		i = i*64 + bits.Len64(level[i]) - 1
	}
	return i
}
