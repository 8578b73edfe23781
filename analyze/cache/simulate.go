package cache

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Policy is an eviction policy.
type Policy string

const (
	// LRU evicts the least recently used block. [CurveBuilder] computes the same
	// for all capacities, and faster.
	LRU Policy = "lru"
	// LFU evicts the block used least often since it was inserted, breaking ties by
	// least recent use. The count of an evicted block starts again at one.
	LFU Policy = "lfu"
	// FIFO evicts the block that was inserted first.
	FIFO Policy = "fifo"
	// Belady evicts, or does not insert, the block whose next use is farthest in
	// the future, blocks that are never used again first. It takes the block uses
	// one by one from head to tail and counts every hit, also after a miss. It is
	// the upper bound of all policies' block hit rate (Belady, A Study of
	// Replacement Algorithms for a Virtual-Storage Computer, 1966).
	Belady Policy = "belady"
)

// Policies returns all policies, the bound last.
func Policies() []Policy { return []Policy{LRU, LFU, FIFO, Belady} }

// ParsePolicy returns the policy of a name, in any case.
func ParsePolicy(name string) (Policy, error) { return parseName("cache policy", name, Policies()) }

// parseName finds a name among the known ones, in any case.
func parseName[T ~string](what, name string, known []T) (T, error) {
	value := T(strings.ToLower(name))
	if slices.Contains(known, value) {
		return value, nil
	}
	names := make([]string, len(known))
	for i, v := range known {
		names[i] = string(v)
	}
	return "", fmt.Errorf("%s %q is not one of %s", what, name, strings.Join(names, ", "))
}

// Simulate returns the hits of a cache at each of the capacities, which are in
// blocks and at least 0. blockSize is in tokens, at least 1.
//
// Each capacity takes one pass. Memory is 12 bytes per block of capacity and 4 per
// distinct block (LRU), 4 and 4 (FIFO), 12 per distinct block and 8 per use of the
// most used block (LFU), or 4 bytes per block use (Belady).
func Simulate(s *Sequence, p Policy, blockSize int, capacities ...int) ([]Hits, error) {
	p, err := ParsePolicy(string(p))
	if err != nil {
		return nil, fmt.Errorf("simulating a cache: %w", err)
	}
	if blockSize < 1 {
		return nil, fmt.Errorf("simulating a cache: block size %d is below 1 token", blockSize)
	}
	if i := slices.IndexFunc(capacities, func(c int) bool { return c < 0 }); i >= 0 {
		return nil, fmt.Errorf("simulating a cache: capacity is negative: %d blocks", capacities[i])
	}
	var next []uint32
	if p == Belady {
		if len(s.numbers) > never {
			return nil, fmt.Errorf("simulating a cache: %d block accesses exceed the limit of %d for Belady's policy", len(s.numbers), never)
		}
		next = nextUses(s)
	}
	hits := make([]Hits, len(capacities))
	for i, capacity := range capacities {
		if p == Belady {
			hits[i] = belady(s, next, blockSize, capacity)
		} else {
			hits[i] = simulate(s, newStore(p, s.distinct, capacity), blockSize)
		}
	}
	return hits, nil
}

// store is a cache of blocks with an eviction policy.
type store interface {
	// has reports whether a block is cached. It changes nothing.
	has(number uint32) bool
	// use inserts or refreshes a block, evicting another if necessary.
	use(number uint32)
}

// newStore returns an empty store for blocks numbered below distinct, or nil
// without capacity.
func newStore(p Policy, distinct, capacity int) store {
	switch {
	case capacity == 0:
		return nil
	case p == LFU:
		return newLFU(distinct, capacity)
	case p == FIFO:
		return newFIFO(distinct, capacity)
	default:
		return newLRU(capacity)
	}
}

func simulate(s *Sequence, cached store, blockSize int) Hits {
	var h Hits
	for i, hit := range hitsOf(s, cached) {
		h.addRequest(hit, len(s.blocks(i)), s.requests[i].isl, blockSize)
	}
	return h
}

// hitsOf yields the number of each request and of its leading blocks that hit.
func hitsOf(s *Sequence, cached store) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for i := range s.requests {
			hit := 0
			if cached != nil {
				hit = serve(cached, s.blocks(i))
			}
			if !yield(i, hit) {
				return
			}
		}
	}
}

// LRUHits yields the number of each request of a sequence, from 0, and of its blocks
// that hit in an LRU cache of a capacity in blocks, below 1 for none.
func LRUHits(s *Sequence, capacity int) iter.Seq2[int, int] {
	return hitsOf(s, newStore(LRU, s.distinct, max(capacity, 0)))
}

// serve looks up the blocks of a request, then uses them from tail to head. It
// returns the number of leading blocks that hit.
func serve(cached store, blocks []uint32) (hit int) {
	for hit < len(blocks) && cached.has(blocks[hit]) {
		hit++
	}
	for _, number := range slices.Backward(blocks) {
		cached.use(number)
	}
	return hit
}
