package analyze

import (
	"cmp"
	"math"
	"slices"

	"moontide/trace/block"
	"moontide/trace/stats"
)

// Roots describes the first blocks of prompts. A root is shared if several requests
// start with it: a system prompt or the beginning of a conversation.
type Roots struct {
	// Distinct is the number of different roots, Shared the number used by several
	// requests.
	Distinct int `json:"roots_distinct"`
	Shared   int `json:"roots_shared"`
	// Requests is the number of requests that start with a shared root.
	Requests int `json:"root_requests"`
	// Top lists the 10 shared roots with the most requests in descending order.
	Top []Root `json:"roots"`
}

// Root is a first block shared by several requests.
type Root struct {
	// ID is the id of the block.
	ID uint64 `json:"id"`
	// Requests is the number of requests that start with it.
	Requests int `json:"requests"`
	// ChainBlocks is the number of leading blocks that all these requests share, at
	// least 1. ChainTokens is their number of tokens, at most the ISL of the
	// shortest prompt.
	ChainBlocks int `json:"blocks"`
	ChainTokens int `json:"tokens"`
}

// rootCounter counts the prompts that start with each block.
type rootCounter struct {
	index map[uint32]int // by block number
	roots []root
}

type root struct {
	id       uint64
	number   uint32
	requests int32
	isl      int32 // of the shortest prompt
}

func (c *rootCounter) add(id uint64, number uint32, isl int32) {
	i, known := c.index[number]
	if !known {
		if c.index == nil {
			c.index = map[uint32]int{}
		}
		i = len(c.roots)
		c.index[number] = i
		c.roots = append(c.roots, root{id: id, number: number, isl: math.MaxInt32})
	}
	r := &c.roots[i]
	r.requests++
	r.isl = min(r.isl, isl)
}

func (c *prefixCounter) sharedRoots(size block.Size) Roots {
	result := Roots{Distinct: len(c.roots.roots)}
	var shared []root
	for _, r := range c.roots.roots {
		if r.requests > 1 {
			shared = append(shared, r)
			result.Shared++
			result.Requests += int(r.requests)
		}
	}
	// Stable: ties stay in order of first use.
	slices.SortStableFunc(shared, func(a, b root) int { return cmp.Compare(b.requests, a.requests) })
	for _, r := range shared[:min(10, len(shared))] {
		chain := c.chain(r)
		result.Top = append(result.Top, Root{
			ID: r.id, Requests: int(r.requests),
			ChainBlocks: chain, ChainTokens: min(chain*size.Tokens, int(r.isl)),
		})
	}
	return result
}

// chain returns the number of leading blocks that all prompts of a root share. An
// id represents its whole prefix, so these are the blocks used as often as the
// root, in the order of the first prompt that starts with it.
func (c *prefixCounter) chain(r root) int {
	end := c.runWith(r.number).end()
	next := r.number + 1
	for next < end {
		s := c.repeatedBlock(next)
		if s == nil || int(s.uses) != int(r.requests) {
			break
		}
		next++
	}
	return int(next - r.number)
}

// Reuse describes how long it takes until a block is used again, which is how long
// a cache has to keep it. It has one value for each prefix hit of an infinite
// cache: the distance to the most recent earlier request, in row order, with the
// block.
type Reuse struct {
	// Time is the time since the block's last use in milliseconds, if both requests
	// have a timestamp; negative times are treated as 0.
	Time stats.Sample
	// Requests is the number of requests since the block's last use: 1 for the
	// immediately preceding request.
	Requests stats.Sample
}

// reuseCounter collects reuse intervals. Blocks of a prompt that were last used by
// the same request share an interval, and a prompt has few intervals: no block was
// used later than the block before it.
type reuseCounter struct {
	times, requests stats.Collector

	// blocks is the number of pending hits, all last used by row from.
	from   uint32
	blocks int
}

// hit counts a prefix hit of the last of rows on a block last used by row last.
func (c *reuseCounter) hit(rows *rows, last uint32) {
	if last != c.from {
		c.flush(rows)
		c.from = last
	}
	c.blocks++
}

// flush counts the pending hits.
func (c *reuseCounter) flush(rows *rows) {
	blocks, me := c.blocks, rows.len()-1
	c.blocks = 0
	apart := me - int(c.from)
	if blocks == 0 || apart == 0 { // 0: the block occurs twice in the prompt
		return
	}
	c.requests.AddN(float64(apart), blocks)
	if ms := rows.at(me).at() - rows.at(int(c.from)).at(); !math.IsNaN(ms) {
		c.times.AddN(max(ms, 0), blocks)
	}
}

func (c *reuseCounter) result() Reuse {
	return Reuse{Time: c.times.Sample(), Requests: c.requests.Sample()}
}
