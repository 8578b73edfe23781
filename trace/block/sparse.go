package block

// Sparse keeps a value for some blocks, by the numbers that a [Table] gave them,
// and 0 for the others. It
// takes memory for 64 blocks that follow each other at once: the blocks of a
// request mostly do, and a look-up is a few times as quick as that of a map. The
// zero Sparse is all zeros. It is not safe for concurrent use while it is set.
type Sparse struct {
	slabs []*[sparseSlab]*[sparsePage]uint32
}

const (
	sparsePage = 64 // values
	sparseSlab = 64 // pages
)

// At returns the value of a block.
func (s *Sparse) At(number uint32) uint32 {
	slab := int(number / (sparsePage * sparseSlab))
	if slab >= len(s.slabs) || s.slabs[slab] == nil {
		return 0
	}
	page := s.slabs[slab][number/sparsePage%sparseSlab]
	if page == nil {
		return 0
	}
	return page[number%sparsePage]
}

// Set gives a block a value.
func (s *Sparse) Set(number, value uint32) {
	slab := int(number / (sparsePage * sparseSlab))
	for slab >= len(s.slabs) {
		s.slabs = append(s.slabs, nil)
	}
	if s.slabs[slab] == nil {
		s.slabs[slab] = new([sparseSlab]*[sparsePage]uint32)
	}
	page := &s.slabs[slab][number/sparsePage%sparseSlab]
	if *page == nil {
		*page = new([sparsePage]uint32)
	}
	(*page)[number%sparsePage] = value
}
