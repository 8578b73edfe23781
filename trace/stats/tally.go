package stats

import (
	"maps"
	"math"
	"slices"
	"sort"
)

// Tally collects whole numbers, of which there may be hundreds of millions, for
// their [Sample]: exact, in about 2 bytes for each number, or 4 for each
// that could lie between the others where they are dense. The zero Tally is
// empty. It is not safe for concurrent use.
type Tally struct {
	near [nearPages]*tallyPage // by all but the last 16 bits of their numbers
	far  map[int64]*tallyPage
}

// nearPages are the pages that are found without a map: times up to a second, in
// nanoseconds.
const nearPages = 1 << 14

// tallyPage holds the numbers that agree in all but their last 16 bits: these, in
// the order in which they came, and from when it is full on how often each
// occurs. They still come in order then and are counted a thousand at a time, for
// to count each in another page is to miss the processor's cache each time.
type tallyPage struct {
	came   []uint16
	counts []uint32 // pageSize of them, or nil
}

const (
	pageSize = 1 << 16
	// fullPage numbers take half of what their counts do.
	fullPage = pageSize
	// atOnce is how many are counted at a time.
	atOnce = 1 << 12
)

// Add takes one number.
func (t *Tally) Add(n int64) {
	var p *tallyPage
	if key := uint64(n) >> 16; key < nearPages {
		p = t.near[key]
	}
	if p == nil {
		p = t.page(n >> 16)
	}
	if p.came = append(p.came, uint16(n)); len(p.came) == cap(p.came) {
		p.tidy()
	}
}

// page finds or makes one that is not at hand.
func (t *Tally) page(key int64) *tallyPage {
	if uint64(key) < nearPages {
		t.near[key] = &tallyPage{}
		return t.near[key]
	}
	p := t.far[key]
	if p == nil {
		if t.far == nil {
			t.far = map[int64]*tallyPage{}
		}
		p = &tallyPage{}
		t.far[key] = p
	}
	return p
}

// tidy counts the numbers of a page that is full.
func (p *tallyPage) tidy() {
	switch {
	case p.counts != nil:
	case len(p.came) < fullPage:
		return
	default:
		p.counts = make([]uint32, pageSize)
	}
	p.count()
	if cap(p.came) != atOnce {
		p.came = make([]uint16, 0, atOnce)
	}
}

func (p *tallyPage) count() {
	for _, low := range p.came {
		p.counts[low]++
	}
	p.came = p.came[:0]
}

// pages are all that there are, by their keys.
func (t *Tally) pages() map[int64]*tallyPage {
	all := map[int64]*tallyPage{}
	maps.Copy(all, t.far)
	for key, p := range t.near {
		if p != nil {
			all[int64(key)] = p
		}
	}
	return all
}

// Sample is that of the numbers divided by a unit, which is positive. The
// Tally is empty then.
func (t *Tally) Sample(unit float64) Sample {
	s := &tallied{unit: unit}
	pages := t.pages()
	for _, key := range slices.Sorted(maps.Keys(pages)) {
		p := pages[key]
		p.sort()
		s.keys, s.pages = append(s.keys, key), append(s.pages, p)
		s.count += p.len()
		s.upTo = append(s.upTo, s.count)
	}
	*t = Tally{}
	if s.count == 0 {
		return Sample{}
	}
	d := Sample{Count: s.count, Min: s.at(0), Max: s.at(s.count - 1), tallied: s}
	for value, n := range s.each {
		d.Sum += value * float64(n)
	}
	d.Mean = d.Sum / float64(d.Count)
	squares := 0.0
	for value, n := range s.each {
		squares += (value - d.Mean) * (value - d.Mean) * float64(n)
	}
	d.Std = math.Sqrt(squares / float64(d.Count))
	return d
}

// sort brings the numbers of a page in order: many of them by counting.
func (p *tallyPage) sort() {
	const many = 4096
	if p.counts != nil {
		p.count()
		p.came = nil
		return
	}
	if len(p.came) < many {
		slices.Sort(p.came)
		return
	}
	counts := make([]uint32, pageSize)
	for _, low := range p.came {
		counts[low]++
	}
	sorted := p.came[:0]
	for low, n := range counts {
		for range n {
			sorted = append(sorted, uint16(low))
		}
	}
}

func (p *tallyPage) len() int {
	n := len(p.came)
	for _, count := range p.counts {
		n += int(count)
	}
	return n
}

// tallied are the numbers of a Tally in order.
type tallied struct {
	unit  float64
	count int
	keys  []int64
	pages []*tallyPage
	upTo  []int // numbers up to the end of each page
}

func (s *tallied) value(page int, low int) float64 {
	return float64(s.keys[page]<<16+int64(low)) / s.unit
}

// at returns the value of a rank, 0..count-1.
func (s *tallied) at(rank int) float64 {
	page := sort.SearchInts(s.upTo, rank+1)
	p := s.pages[page]
	rank -= s.before(page)
	if p.counts == nil {
		return s.value(page, int(p.came[rank]))
	}
	for low, n := range p.counts {
		if rank -= int(n); rank < 0 {
			return s.value(page, low)
		}
	}
	return s.value(page, pageSize-1)
}

// before is how many numbers the pages before one hold.
func (s *tallied) before(page int) int {
	if page == 0 {
		return 0
	}
	return s.upTo[page-1]
}

// below is how many values are less than x.
func (s *tallied) below(x float64) int {
	page := sort.Search(len(s.keys), func(i int) bool { return s.value(i, pageSize-1) >= x })
	if page == len(s.keys) {
		return s.count
	}
	p, n := s.pages[page], s.before(page)
	if p.counts == nil {
		return n + sort.Search(len(p.came), func(i int) bool { return s.value(page, int(p.came[i])) >= x })
	}
	end := sort.Search(pageSize, func(low int) bool { return s.value(page, low) >= x })
	for _, count := range p.counts[:end] {
		n += int(count)
	}
	return n
}

// each visits the values in order, and how often each occurs; a value may come
// more than once.
func (s *tallied) each(yield func(value float64, n int) bool) {
	for i, p := range s.pages {
		for _, low := range p.came {
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
