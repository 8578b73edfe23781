package tree

import (
	"moontide/trace"
	"moontide/trace/stats"
)

// Model is a trace's model by the tree method; see the package comment. Make one
// with [Fit]. It is immutable and safe for concurrent use.
type Model struct {
	size      trace.BlockSize
	irregular int

	nodes  []node              // the core: the root, which has no blocks, then parents before children
	unique stats.Discrete[int] // blocks of a unique prompt
	tails  stats.Discrete[int] // tokens of a prompt's last block, 1 to a whole block

	outputs stats.Discrete[int]   // OSL
	groups  stats.Discrete[int]   // requests per timestamp
	gaps    stats.Discrete[int64] // nanoseconds between timestamps, at least 1
}

// node is a run of shared blocks.
type node struct {
	first  uint64 // id of its first block; the ids of the others follow
	blocks int
	next   stats.Discrete[int] // where requests go on: an index in Model.nodes, or an exit
}

// The exits from the core, negative so that no node has them.
const (
	exitUnique   = -1 // to a unique prompt
	exitEnd      = -2 // the request ends
	exitOneBlock = -3 // to one unique block, because the request would be empty otherwise
)

// BlockSize returns the tokens per block and how they are known.
func (m *Model) BlockSize() trace.BlockSize { return m.size }

// Irregular returns how many of the source's rows had not one id for each of
// their ceil(ISL / block size) blocks. A source that rounds down has nearly all
// rows irregular; a wrong block size causes many, too.
func (m *Model) Irregular() int { return m.irregular }

// Requests draws n requests like the source's, as [Model.Draw] does for the zero
// [Shape]. It can be ranged over repeatedly and concurrently, and yields the
// same requests each time. Its only errors are those of Draw.
func (m *Model) Requests(seed uint64, n int) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		d, err := m.Draw(seed, n, Shape{})
		if err != nil {
			yield(trace.Request{}, err)
			return
		}
		d.Requests()(yield)
	}
}
