package tree

import (
	"moontide/trace/block"
	"moontide/trace/stats"
)

// Model is a tree model of a trace; see the package comment. Make one with
// [Fit]. It is immutable and safe for concurrent use.
type Model struct {
	size      block.Size
	irregular int

	nodes  []node              // the core: the root without blocks, then parents before children
	unique stats.Discrete[int] // blocks of a unique prompt
	tails  stats.Discrete[int] // tokens of a prompt's last block, 1 to a whole block

	outputs stats.Discrete[int]   // OSL
	groups  stats.Discrete[int]   // requests per timestamp
	gaps    stats.Discrete[int64] // nanoseconds between timestamps, at least 1
}

// node is a run of shared blocks.
type node struct {
	first  uint64 // id of its first block; the others follow in sequence
	blocks int
	next   stats.Discrete[int] // where requests continue: an index in Model.nodes, or an exit
}

// The exits from the core, negative to differ from node indices.
const (
	exitUnique   = -1 // to a unique prompt
	exitEnd      = -2 // the request ends
	exitOneBlock = -3 // to one unique block, because the request would otherwise be empty
)

// BlockSize returns the tokens per block and how the size was determined.
func (m *Model) BlockSize() block.Size { return m.size }

// Irregular returns the number of source rows that do not have one id for each
// of their ceil(ISL / block size) blocks. In a source that rounds down, nearly
// all rows are irregular; a wrong block size causes many, too.
func (m *Model) Irregular() int { return m.irregular }
