package analyze

// blockSet is a set of block ids that also knows which of them were added more
// than once. The zero value is empty and ready.
//
// Ids are kept in pages of 64 consecutive ones, for most traces number their
// blocks by first use and a prompt is a few stretches of neighbours: the page
// at hand then answers nearly every question without a look into the map.
// Ids that are random numbers cost a page each and still work.
type blockSet struct {
	unique int // distinct ids
	at     map[uint64]int32
	pages  []page
	// number and index are those of the page used last, valid once there is one.
	number uint64
	index  int32
}

// page holds a bit for each of 64 consecutive ids.
type page struct{ added, repeated uint64 }

// add puts id into the set and reports whether it was there before.
func (s *blockSet) add(id uint64) bool {
	p, bit := s.page(id>>6), uint64(1)<<(id&63)
	if p.added&bit != 0 {
		p.repeated |= bit
		return true
	}
	p.added |= bit
	s.unique++
	return false
}

// repeated reports whether id was added more than once.
func (s *blockSet) repeated(id uint64) bool {
	return s.page(id>>6).repeated>>(id&63)&1 != 0
}

// page returns the page of a number, made on its first use; it is good until
// the next call.
func (s *blockSet) page(number uint64) *page {
	if len(s.pages) > 0 && number == s.number {
		return &s.pages[s.index]
	}
	index, ok := s.at[number]
	if !ok {
		if s.at == nil {
			s.at = map[uint64]int32{}
		}
		index = int32(len(s.pages))
		s.pages = append(s.pages, page{})
		s.at[number] = index
	}
	s.number, s.index = number, index
	return &s.pages[index]
}
