package virtual

import (
	"sync/atomic"

	"moontide/replay/sim/engine"
)

// Prompts keeps the prompts of a trace for endpoints that replay the same rows and have
// the same block sizes and generated tokens in the cache, so that each prompt is hashed
// once. It is safe for concurrent use.
type Prompts struct {
	rows []atomic.Pointer[engine.Prompt]
	room atomic.Int64 // for further blocks
}

// maxKeptBlocks limits the memory of the hashes, 8 bytes each.
const maxKeptBlocks = 16 << 20

// NewPrompts returns an empty set of prompts for a number of rows.
func NewPrompts(rows int) *Prompts {
	p := &Prompts{rows: make([]atomic.Pointer[engine.Prompt], rows)}
	p.room.Store(maxKeptBlocks)
	return p
}

// of returns the prompt of a row, made by the function if it is not there yet.
func (p *Prompts) of(row int, create func() *engine.Prompt) *engine.Prompt {
	if p == nil || row >= len(p.rows) {
		return create()
	}
	if kept := p.rows[row].Load(); kept != nil {
		return kept
	}
	made := create()
	if p.room.Add(-int64(made.Blocks())) >= 0 {
		p.rows[row].Store(made)
	}
	return made
}
