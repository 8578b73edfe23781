package analyze

import (
	"moontide/trace/block"
)

// blockUses knows of each block that came more than once who used it. Of
// the others, which are most, it knows only that there are so many: the run in
// which a block was fresh tells the rest. Blocks go by the numbers of their first
// use. The zero value has no blocks.
type blockUses struct {
	unique int // different blocks
	shared pages[sharedBlock]
	index  block.Sparse // the index in shared plus 1, of the blocks that are there
}

// sharedBlock is a block that came more than once, if only in one prompt, which
// uses it once.
type sharedBlock struct {
	number uint32
	run    uint32 // index of the run in which it was fresh
	last   uint32 // row to use it
	uses   uint32
	runs   uint32 // that hang under it: see run
}

// share notes that a block that was fresh in a run comes again, in a row. That is
// its second use, or the same prompt's once more.
func (b *blockUses) share(number, run, row uint32, uses int) {
	b.shared.add(sharedBlock{number: number, run: run, last: row, uses: uint32(uses)})
	b.index.Set(number, uint32(b.shared.len))
}

// repeated returns what is known of a block that came more than once; nil
// for any other.
func (b *blockUses) repeated(number uint32) *sharedBlock {
	if i := b.index.At(number); i > 0 {
		return b.shared.at(i - 1)
	}
	return nil
}

const (
	pageBits = 12
	pageSize = 1 << pageBits
)

// pages is a list that grows without copying what it has: a slice of millions
// spends more time on that than on what it is for.
type pages[T any] struct {
	pages []*[pageSize]T
	len   int
}

func (p *pages[T]) at(i uint32) *T { return &p.pages[i>>pageBits][i%pageSize] }

func (p *pages[T]) add(v T) {
	if p.len%pageSize == 0 {
		p.pages = append(p.pages, new([pageSize]T))
	}
	p.pages[p.len>>pageBits][p.len%pageSize] = v
	p.len++
}

// all yields the list in its order.
func (p *pages[T]) all(yield func(*T) bool) {
	for i := range p.len {
		if !yield(p.at(uint32(i))) {
			return
		}
	}
}
