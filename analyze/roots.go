package analyze

import (
	"cmp"
	"math"
	"slices"

	"moontide/trace"
)

// Roots are the first blocks of prompts. One that several requests start with
// is a shared root: a system prompt, or the beginning of a conversation.
type Roots struct {
	// Distinct counts the different first blocks, Shared those that more than
	// one request starts with.
	Distinct, Shared int
	// Requests is the number of requests that start with a shared root.
	Requests int
	// Top are the shared roots that most requests start with, most first; at
	// most [Options].Top.
	Top []Root
}

// Root is a beginning that several requests have.
type Root struct {
	// ID is the first block.
	ID uint64
	// Requests is how many start with it.
	Requests int
	// ChainBlocks is the number of leading blocks that all of them have in
	// common, at least 1, and ChainTokens their tokens: whole blocks, but no
	// more than the shortest of these prompts has.
	ChainBlocks, ChainTokens int
}

// rootCounter counts who starts with which block.
type rootCounter struct {
	index map[uint32]uint32
	roots []root
}

type root struct {
	id       uint64
	number   uint32
	requests int32
	isl      int32 // of the shortest prompt
}

// add notes a prompt whose first block has an id and a number.
func (c *rootCounter) add(id uint64, number uint32, isl int32) {
	i, known := c.index[number]
	if !known {
		if c.index == nil {
			c.index = map[uint32]uint32{}
		}
		i = uint32(len(c.roots))
		c.index[number] = i
		c.roots = append(c.roots, root{id: id, number: number, isl: math.MaxInt32})
	}
	r := &c.roots[i]
	r.requests++
	r.isl = min(r.isl, isl)
}

func (c *prefixCounter) sharedRoots(rows []row, size trace.BlockSize, top int) Roots {
	result := Roots{Distinct: len(c.roots.roots)}
	var shared []root
	for _, r := range c.roots.roots {
		if r.requests > 1 {
			shared = append(shared, r)
			result.Shared++
			result.Requests += int(r.requests)
		}
	}
	// Stable, so that of equals the one that came first stays first.
	slices.SortStableFunc(shared, func(a, b root) int { return cmp.Compare(b.requests, a.requests) })
	for _, r := range shared[:min(top, len(shared))] {
		chain := c.chain(r)
		result.Top = append(result.Top, Root{
			ID: r.id, Requests: int(r.requests),
			ChainBlocks: chain, ChainTokens: min(chain*size.Tokens, int(r.isl)),
		})
	}
	return result
}

// chain is the number of leading blocks that all prompts of a root have in
// common. As an id stands for its whole prefix, these are the blocks that are
// used as often as the root is; the first prompt that starts with the root
// shows them in their order.
func (c *prefixCounter) chain(r root) int {
	end := c.runWith(r.number).end()
	next := r.number + 1
	for next < end {
		s := c.blocks.repeated(next)
		if s == nil || int(s.uses) != int(r.requests) {
			break
		}
		next++
	}
	return int(next - r.number)
}
