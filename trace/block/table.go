// Package block numbers the blocks of a trace: it maps block ids, which may be any
// 64-bit integers, to 0, 1, 2, ... in order of first use, so that state of blocks
// can be kept in slices.
//
// The zero [Table] works:
//
//	var t block.Table
//	var numbers []uint32
//	for r, err := range requests {
//		...
//		numbers = t.AppendNumbers(numbers[:0], r.HashIDs)
//	}
//	fmt.Println(t.Len(), "distinct blocks")
//
// In most traces a prompt is a few runs of consecutive ids; in others ids are
// hashes. Both are cheap, even mixed in one trace: see [Table].
//
// A [SizeDetector] finds the number of tokens of a block.
package block

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// MaxLen is the largest number of distinct ids of a Table.
const MaxLen = math.MaxInt32

// ErrFull is the error for more than [MaxLen] distinct ids.
var ErrFull = errors.New("too many distinct blocks")

const (
	pageBits = 7
	pageSize = 1 << pageBits
	// A Table may have this many places in pages for each distinct id, plus the
	// first pages. This bounds the memory for ids that only look like runs.
	placesPerID = 4
	firstPages  = 8
)

// page holds the numbers, plus 1, of pageSize consecutive ids; 0 is an unused id.
type page [pageSize]uint32

// pageList holds pages in chunks, which spares the garbage collector a pointer to each.
type pageList struct {
	chunks []*[chunkPages]page
	len    int
}

const chunkPages = 32

func (l *pageList) at(i uint32) *page { return &l.chunks[i/chunkPages][i%chunkPages] }

// add returns a new page.
func (l *pageList) add() *page {
	if l.len%chunkPages == 0 {
		l.chunks = append(l.chunks, new([chunkPages]page))
	}
	l.len++
	return l.at(uint32(l.len - 1))
}

// Table assigns a number to each id. The zero Table is empty. It is not safe for
// concurrent use.
//
// Ids are looked up by their upper bits in a hash table. The first id is stored
// there; the second with the same upper bits opens a page for all of them. So a
// run costs one hash lookup a page, and a random id one lookup. The number of
// pages is limited in proportion to the distinct ids, so memory is about 4 B per
// distinct id for runs, 16 to 32 B for random ids, and 48 B at most.
type Table struct {
	count int
	full  bool
	ids   hashTable
	pages pageList
	// current is the page that was used last, for ids with these upper bits; nil
	// at first.
	current *page
	upper   uint64
}

// Number returns the number of id and whether this is its first use. The n-th
// distinct id, from 0, has the number n. After [MaxLen] distinct ids, further ones
// all get the number MaxLen, and [Table.Err] returns an error.
func (t *Table) Number(id uint64) (n uint32, isNew bool) {
	if t.current == nil || id>>pageBits != t.upper {
		e, neighbour := t.ids.find(id)
		switch {
		case e.isPage():
			t.setCurrent(t.pages.at(e.page()), id)
		case e.value != 0:
			return e.value - 1, false
		case neighbour && t.mayOpenPage():
			t.openPage(id)
		default:
			if n = t.next(); n != MaxLen {
				t.ids.put(e, id, n+1)
			}
			return n, true
		}
	}
	place := &t.current[id%pageSize]
	if *place != 0 {
		return *place - 1, false
	}
	if n = t.next(); n != MaxLen {
		*place = n + 1
	}
	return n, true
}

// AppendNumbers appends the numbers of ids to dst and returns it.
func (t *Table) AppendNumbers(dst []uint32, ids []uint64) []uint32 {
	dst = slices.Grow(dst, len(ids))
	for len(ids) > 0 {
		n, _ := t.Number(ids[0])
		dst = append(dst, n)
		fromPage := t.numberFromPage(dst[len(dst):cap(dst)], ids[1:])
		dst = dst[:len(dst)+fromPage]
		ids = ids[1+fromPage:]
	}
	return dst
}

// numberFromPage is the fast path for runs. It writes the numbers of the ids up to
// the first one outside the current page to dst, and returns their number.
func (t *Table) numberFromPage(dst []uint32, ids []uint64) int {
	p, upper := t.current, t.upper
	if p == nil {
		return 0
	}
	dst = dst[:len(ids)]
	for i, id := range ids {
		if id>>pageBits != upper {
			return i
		}
		n := p[id%pageSize]
		if n == 0 {
			if t.count == MaxLen {
				return i // Number handles this
			}
			t.count++
			n = uint32(t.count)
			p[id%pageSize] = n
		}
		dst[i] = n - 1
	}
	return len(ids)
}

// Len returns the number of distinct ids so far.
func (t *Table) Len() int { return t.count }

// Err returns an [ErrFull] if there were more than [MaxLen] distinct ids, whose
// numbers are not unique.
func (t *Table) Err() error {
	if !t.full {
		return nil
	}
	return fmt.Errorf("numbering blocks: %w: more than %d", ErrFull, MaxLen)
}

// next returns the next free number.
func (t *Table) next() uint32 {
	if t.count == MaxLen {
		t.full = true
		return MaxLen
	}
	t.count++
	return uint32(t.count - 1)
}

func (t *Table) mayOpenPage() bool {
	return t.pages.len*pageSize < placesPerID*t.count+firstPages*pageSize
}

// openPage opens the page of id, copies the ids of its range to it, and makes it
// current.
func (t *Table) openPage(id uint64) {
	number := uint32(t.pages.len)
	p := t.pages.add()
	t.ids.replaceByPage(id, number, p)
	t.setCurrent(p, id)
}

func (t *Table) setCurrent(p *page, id uint64) { t.current, t.upper = p, id>>pageBits }
