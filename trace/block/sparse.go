package block

// Sparse is an array of values by block number, see [Table], with memory only for
// blocks that have a value and their neighbours, 64 at a time. A lookup is a few
// times faster than that of a map. The zero Sparse is all zeros. Set must not run
// concurrently with other calls.
type Sparse struct {
	slabs []*[sparseSlab]*[sparsePage]uint32
}

const (
	sparsePage = 64 // values
	sparseSlab = 64 // pages
)

// At returns the value of a block, 0 if it was not set.
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

// Set sets the value of a block.
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
