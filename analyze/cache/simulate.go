package cache

import (
	"fmt"
	"slices"
	"strings"
)

// Policy is a rule for which block leaves a full cache.
type Policy string

const (
	// LRU evicts the block whose last use is longest ago. [CurveBuilder] gives
	// the same for every capacity, and faster.
	LRU Policy = "lru"
	// LFU evicts the block with the fewest uses since it came into the cache,
	// of these the one whose last use is longest ago. What is evicted is
	// forgotten: should it come again, it counts from one.
	LFU Policy = "lfu"
	// FIFO evicts the block that came first, however often it was used since.
	FIFO Policy = "fifo"
	// Belady evicts, or does not let in, the block whose next use is farthest
	// in the future, first of all those that are never used again. It takes
	// each reference for itself, in order from head to tail, and counts every
	// block that it has, also after a miss. No policy hits more blocks: it is
	// the bound, of the block hit rate alone (Belady, A Study of Replacement
	// Algorithms for a Virtual-Storage Computer, 1966).
	Belady Policy = "belady"
)

// Policies are all policies, the bound last.
func Policies() []Policy { return []Policy{LRU, LFU, FIFO, Belady} }

// ParsePolicy returns the policy of a name, in any case.
func ParsePolicy(name string) (Policy, error) {
	p := Policy(strings.ToLower(name))
	if !slices.Contains(Policies(), p) {
		return "", fmt.Errorf("cache policy %q is not one of %s", name, names(Policies()))
	}
	return p, nil
}

// names lists values for an error message.
func names[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return strings.Join(texts, ", ")
}

// Simulate returns what a cache with the policy hits at each of the capacities,
// which are in blocks and at least 0. blockSize is in tokens, at least 1.
//
// A capacity takes one pass over the trace: constant work for each reference,
// for Belady a logarithm of base 64 of the trace's length. Each holds 12
// bytes for each block of capacity and 4 for each distinct one (LRU), 4 for each distinct block and 4 for
// each block of capacity (FIFO), 12 for each distinct block and 8 for the most
// uses of one (LFU), or 4 bytes for each reference (Belady).
func Simulate(s *Sequence, p Policy, blockSize int, capacities ...int) ([]Hits, error) {
	if _, err := ParsePolicy(string(p)); err != nil {
		return nil, fmt.Errorf("simulating a cache: %w", err)
	}
	if blockSize < 1 {
		return nil, fmt.Errorf("simulating a cache: block size %d is below 1 token", blockSize)
	}
	if i := slices.IndexFunc(capacities, func(c int) bool { return c < 0 }); i >= 0 {
		return nil, fmt.Errorf("simulating a cache: capacity %d is below 0 blocks", capacities[i])
	}
	if p == Belady {
		if len(s.numbers) > never {
			return nil, fmt.Errorf("simulating a cache: %d references are more than Belady's policy can look ahead", len(s.numbers))
		}
		return simulateBelady(s, blockSize, capacities), nil
	}
	hits := make([]Hits, len(capacities))
	for i, capacity := range capacities {
		hits[i] = simulate(s, newStore(p, s.distinct, capacity), blockSize)
	}
	return hits, nil
}

// store is a cache of blocks that evicts by some policy.
type store interface {
	// has reports whether a block is cached. It changes nothing.
	has(number uint32) bool
	// use inserts or refreshes a block, after it evicted one if it must.
	use(number uint32)
}

// newStore returns an empty store for blocks numbered below distinct.
func newStore(p Policy, distinct, capacity int) store {
	switch {
	case capacity == 0:
		return nothing{}
	case p == LFU:
		return newLFU(distinct, capacity)
	case p == FIFO:
		return newFIFO(distinct, capacity)
	default:
		return newLRU(capacity)
	}
}

// nothing is a store without room.
type nothing struct{}

func (nothing) has(uint32) bool { return false }
func (nothing) use(uint32)      {}

func simulate(s *Sequence, cached store, blockSize int) Hits {
	var h Hits
	for i, r := range s.requests {
		blocks := s.blocks(i)
		h.add(serve(cached, blocks), len(blocks), r.isl, blockSize)
	}
	return h
}

// serve looks a request up, which hits the blocks that it returns, and then
// uses its blocks from tail to head.
func serve(cached store, blocks []uint32) (hit int) {
	for hit < len(blocks) && cached.has(blocks[hit]) {
		hit++
	}
	for _, number := range slices.Backward(blocks) {
		cached.use(number)
	}
	return hit
}
