package tree

import (
	"moontide/trace"
	"moontide/trace/stats"
)

// Tree is a model of a trace by the tree method; see the package comment. Make
// one with [FitTree]. It does not change and may be used by any number of
// goroutines at once.
type Tree struct {
	size      trace.BlockSize
	irregular int

	nodes  []treeNode          // the core: the root, which has no blocks, then parents before children
	unique stats.Discrete[int] // blocks of a unique prompt
	tails  stats.Discrete[int] // tokens of a prompt's last block, 1 to a whole block

	outputs  stats.Discrete[int]   // OSL
	together stats.Discrete[int]   // requests that share a timestamp
	steps    stats.Discrete[int64] // nanoseconds between timestamps, at least 1
}

// treeNode is a run of shared blocks.
type treeNode struct {
	first  uint64 // id of its first block; the others have the ids that follow
	blocks int
	ways   stats.Discrete[int] // where requests go on to: an index in Tree.nodes, or out
}

// Ways that a request leaves the core, negative so that no node has them.
const (
	toUnique = -1 // to blocks that are the request's own
	toEnd    = -2 // nowhere: the last block was the prompt's
	toBlock  = -3 // to one block of its own, for there would be none otherwise
)

// BlockSize returns the tokens of a block and how they are known.
func (t *Tree) BlockSize() trace.BlockSize { return t.size }

// Irregular returns the number of the source's rows whose ids were not one for
// each of ceil(ISL / block size) blocks. Few come from a careless source, and
// nearly all from one that rounds down; a wrong block size gives many, too.
func (t *Tree) Irregular() int { return t.irregular }

// Requests draws n requests like the source's: what [Tree.Draw] draws for the
// zero shape. It can be ranged over repeatedly, also at once, and yields the
// same each time. Its only error is one of Draw.
func (t *Tree) Requests(seed uint64, n int) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		d, err := t.Draw(seed, n, TreeShape{})
		if err != nil {
			yield(trace.Request{}, err)
			return
		}
		d.Requests()(yield)
	}
}
