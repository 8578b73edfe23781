package analyze

import "moontide/trace/block"

// blockUses knows of each block who used it: of most, which only one request
// ever uses, in 4 bytes each. Blocks go by the numbers of their first use. The
// zero value has no blocks.
type blockUses struct {
	table block.Table
	// states has, for each block, the row that used it, or again and its index
	// in shared.
	states pages[uint32]
	shared pages[sharedBlock]
}

// again marks a state as an index in shared. Rows are fewer, and blocks that are
// used more than once take up more memory than there is before they are as many.
const again = 1 << 31

// sharedBlock is a block that was used more than once.
type sharedBlock struct {
	id          uint64
	number      uint32
	first, last uint32 // rows
	uses        uint32
	runs        uint32 // that hang under it: see run
}

// use notes that a row has a block. It returns the block's number and, where it
// was there before, the last row to use it.
func (b *blockUses) use(id uint64, row uint32) (number, last uint32, seen bool) {
	number, fresh := b.table.Number(id)
	if fresh {
		b.states.add(row)
		return number, 0, false
	}
	state := b.states.at(number)
	if *state >= again {
		s := b.shared.at(*state &^ again)
		last = s.last
		s.last = row
		s.uses++
		return number, last, true
	}
	last = *state
	*state = again | uint32(b.shared.len)
	b.shared.add(sharedBlock{id: id, number: number, first: last, last: row, uses: 2})
	return number, last, true
}

// unique is the number of different blocks.
func (b *blockUses) unique() int { return b.states.len }

// repeated returns what is known of a block that was used more than once; nil
// for any other.
func (b *blockUses) repeated(number uint32) *sharedBlock {
	if state := *b.states.at(number); state >= again {
		return b.shared.at(state &^ again)
	}
	return nil
}

// owner is the row that used a block first.
func (b *blockUses) owner(number uint32) uint32 {
	if s := b.repeated(number); s != nil {
		return s.first
	}
	return *b.states.at(number)
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
