package stats

import (
	"maps"
	"math"
	"slices"
	"sort"
)

// SampleBuilder collects up to hundreds of millions of integers for an exact
// [Sample]. It takes about 2 bytes per integer, or 4 bytes per possible value
// if values are dense. The zero SampleBuilder is empty. It is not safe for
// concurrent use.
type SampleBuilder struct {
	near [nearPages]*page // by all but the last 16 bits of the integers
	far  map[int64]*page
}

// nearPages is the number of pages that need no map: nanoseconds up to a second.
const nearPages = 1 << 14

// page holds the integers that agree in all but their last 16 bits. It keeps
// these bits until there are pageSize of them, and then counts each value, in
// batches, because each count is a cache miss.
type page struct {
	pending []uint16
	counts  []uint32 // pageSize of them, or nil
}

const (
	pageSize   = 1 << 16
	countBatch = 1 << 12
)

// Add takes one integer.
func (b *SampleBuilder) Add(n int64) {
	var p *page
	if key := uint64(n) >> 16; key < nearPages {
		p = b.near[key]
	}
	if p == nil {
		p = b.page(n >> 16)
	}
	if p.pending = append(p.pending, uint16(n)); len(p.pending) == cap(p.pending) {
		p.flush()
	}
}

// AddN takes one integer count times.
func (b *SampleBuilder) AddN(n int64, count int) {
	const few = 64
	if count <= few {
		for range count {
			b.Add(n)
		}
		return
	}
	p := b.page(n >> 16)
	if p.counts == nil {
		p.counts = make([]uint32, pageSize)
	}
	p.counts[uint16(n)] += uint32(min(count, math.MaxInt32))
}

// Clone returns a copy, to which other integers can be added.
func (b *SampleBuilder) Clone() *SampleBuilder {
	c := &SampleBuilder{far: map[int64]*page{}}
	for key, p := range b.near {
		if p != nil {
			c.near[key] = p.clone()
		}
	}
	for key, p := range b.far {
		c.far[key] = p.clone()
	}
	return c
}

func (p *page) clone() *page {
	return &page{append(make([]uint16, 0, max(len(p.pending), countBatch)), p.pending...), slices.Clone(p.counts)}
}

// page finds or makes a page.
func (b *SampleBuilder) page(key int64) *page {
	if uint64(key) < nearPages {
		if b.near[key] == nil {
			b.near[key] = &page{}
		}
		return b.near[key]
	}
	p := b.far[key]
	if p == nil {
		if b.far == nil {
			b.far = map[int64]*page{}
		}
		p = &page{}
		b.far[key] = p
	}
	return p
}

// flush counts the pending integers if there are many.
func (p *page) flush() {
	switch {
	case p.counts != nil:
	case len(p.pending) < pageSize:
		return
	default:
		p.counts = make([]uint32, pageSize)
	}
	p.count()
	if cap(p.pending) != countBatch {
		p.pending = make([]uint16, 0, countBatch)
	}
}

func (p *page) count() {
	for _, low := range p.pending {
		p.counts[low]++
	}
	p.pending = p.pending[:0]
}

// Sample returns the sample of the integers divided by a unit above 0, and
// empties the builder.
func (b *SampleBuilder) Sample(unit float64) Sample {
	pages := map[int64]*page{}
	maps.Copy(pages, b.far)
	for key, p := range b.near {
		if p != nil {
			pages[int64(key)] = p
		}
	}
	s := &sortedPages{unit: unit}
	for _, key := range slices.Sorted(maps.Keys(pages)) {
		p := pages[key]
		p.sort()
		s.keys, s.pages = append(s.keys, key), append(s.pages, p)
		s.count += p.len()
		s.upTo = append(s.upTo, s.count)
	}
	*b = SampleBuilder{}
	if s.count == 0 {
		return Sample{}
	}
	d := Sample{Count: s.count, Min: s.at(0), Max: s.at(s.count - 1), pages: s}
	for value, n := range s.each {
		d.Sum += value * float64(n)
	}
	d.setMeanAndStd()
	return d
}

// sort sorts the pending integers; it uses a counting sort if there are many.
func (p *page) sort() {
	const many = 4096
	if p.counts != nil {
		p.count()
		p.pending = nil
		return
	}
	if len(p.pending) < many {
		slices.Sort(p.pending)
		return
	}
	counts := make([]uint32, pageSize)
	for _, low := range p.pending {
		counts[low]++
	}
	sorted := p.pending[:0]
	for low, n := range counts {
		for range n {
			sorted = append(sorted, uint16(low))
		}
	}
}

func (p *page) len() int {
	n := len(p.pending)
	for _, count := range p.counts {
		n += int(count)
	}
	return n
}

// sortedPages holds the integers of a SampleBuilder in ascending order.
type sortedPages struct {
	unit  float64
	count int
	keys  []int64
	pages []*page
	upTo  []int // integers up to the end of each page
}

func (s *sortedPages) value(page int, low int) float64 {
	return float64(s.keys[page]<<16+int64(low)) / s.unit
}

// at returns the value of a rank, 0..count-1.
func (s *sortedPages) at(rank int) float64 {
	page := sort.SearchInts(s.upTo, rank+1)
	p := s.pages[page]
	rank -= s.before(page)
	if p.counts == nil {
		return s.value(page, int(p.pending[rank]))
	}
	for low, n := range p.counts {
		if rank -= int(n); rank < 0 {
			return s.value(page, low)
		}
	}
	return s.value(page, pageSize-1)
}

// before returns the number of integers in all pages before this one.
func (s *sortedPages) before(page int) int {
	if page == 0 {
		return 0
	}
	return s.upTo[page-1]
}

// below returns the number of values less than x.
func (s *sortedPages) below(x float64) int {
	page := sort.Search(len(s.keys), func(i int) bool { return s.value(i, pageSize-1) >= x })
	if page == len(s.keys) {
		return s.count
	}
	p, n := s.pages[page], s.before(page)
	if p.counts == nil {
		return n + sort.Search(len(p.pending), func(i int) bool { return s.value(page, int(p.pending[i])) >= x })
	}
	end := sort.Search(pageSize, func(low int) bool { return s.value(page, low) >= x })
	for _, count := range p.counts[:end] {
		n += int(count)
	}
	return n
}

// each yields the values in ascending order with their counts; a value may occur
// several times.
func (s *sortedPages) each(yield func(value float64, n int) bool) {
	for i, p := range s.pages {
		for _, low := range p.pending {
			if !yield(s.value(i, int(low)), 1) {
				return
			}
		}
		for low, n := range p.counts {
			if n > 0 && !yield(s.value(i, low), int(n)) {
				return
			}
		}
	}
}
