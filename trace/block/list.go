package block

import "sort"

const (
	listBits = 12
	listPage = 1 << listBits
)

// List holds a value for each block, by its number. It grows without copying. The zero
// List is empty.
type List[T any] struct {
	pages []*[listPage]T
	len   int
}

// Len returns the number of values.
func (l *List[T]) Len() int { return l.len }

// At returns the value of a number below Len.
func (l *List[T]) At(number uint32) *T { return &l.pages[number>>listBits][number%listPage] }

// Add appends a value.
func (l *List[T]) Add(v T) {
	if l.len%listPage == 0 {
		l.pages = append(l.pages, new([listPage]T))
	}
	l.pages[l.len>>listBits][l.len%listPage] = v
	l.len++
}

// Search returns the first number for which after is true, or Len. after must be false
// for all values before some number and true from it on.
func (l *List[T]) Search(after func(*T) bool) int {
	page := sort.Search(len(l.pages), func(i int) bool { return after(&l.pages[i][0]) }) - 1
	if page < 0 {
		return 0
	}
	values := l.pages[page][:min(listPage, l.len-page*listPage)]
	return page*listPage + sort.Search(len(values), func(i int) bool { return after(&values[i]) })
}
