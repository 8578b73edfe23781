// Package block numbers the blocks of a trace: it turns block ids, which may be
// any 64-bit integers, into 0, 1, 2, ... in order of first use. Whoever keeps
// something for each block can then keep it in a slice.
//
// The zero [Table] is ready:
//
//	var t block.Table
//	var numbers []uint32
//	for r, err := range requests {
//		...
//		numbers = t.AppendNumbers(numbers[:0], r.HashIDs)
//	}
//	fmt.Println(t.Len(), "distinct blocks")
//
// Most traces number their blocks as they write them, so that a prompt is a few
// runs of consecutive integers; others name blocks by a hash. Both are cheap,
// also mixed in one trace: see [Table].
package block

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// MaxLen is the largest number of distinct ids that a Table can tell apart.
const MaxLen = math.MaxInt32

// ErrFull says that a trace had more than [MaxLen] distinct ids.
var ErrFull = errors.New("too many distinct blocks")

const (
	pageBits = 7
	pageSize = 1 << pageBits
	// A Table may have this many places in pages for each distinct id, and a
	// few pages to begin with. It bounds the memory of ids that only look as if
	// they came in runs.
	placesPerID = 4
	firstPages  = 8
)

// page holds the numbers of pageSize consecutive ids, each plus 1: 0 is an id
// that was not met.
type page [pageSize]uint32

// Table gives each id a number. The zero Table is empty and ready. It is not
// safe for concurrent use.
//
// Ids are looked up by their upper bits in one hash table. A first id is kept
// there itself; when a second with the same upper bits comes, a page is opened
// for all that have them, in which an id is a place. So a run costs a look into
// the hash table for each page, and a random id one for itself. Pages are
// opened only as long as they have no more than a few places for each distinct
// id, so that memory is bounded by the distinct ids, whatever they are: about
// 4 B each for runs, 16 to 32 B for random numbers, at most 48 B.
type Table struct {
	count int
	full  bool
	ids   hashTable
	pages []*page
	// current is the page used last, of the ids whose upper bits are upper; nil
	// before there is one.
	current *page
	upper   uint64
}

// Number returns the number of id and whether this is its first use. The n-th
// distinct id, from 0, has the number n.
//
// From more than [MaxLen] distinct ids on, an id that is not known gets MaxLen
// and stays new, and [Table.Err] is set.
func (t *Table) Number(id uint64) (n uint32, isNew bool) {
	if t.current == nil || id>>pageBits != t.upper {
		e, neighbour := t.ids.find(id)
		switch {
		case e.isPage():
			t.turnTo(t.pages[e.page()], id)
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

// numberFromPage is the quick way for runs. It writes the numbers of the first
// ids to dst, up to the first that does not belong to the current page, and
// returns how many these are.
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
				return i // Number knows what to do
			}
			t.count++
			n = uint32(t.count)
			p[id%pageSize] = n
		}
		dst[i] = n - 1
	}
	return len(ids)
}

// Len is the number of distinct ids so far.
func (t *Table) Len() int { return t.count }

// IDs returns the ids that have the given numbers, each below [Table.Len]. The
// table is made for the other way: it goes through all of its ids, once for all
// numbers.
func (t *Table) IDs(numbers []uint32) []uint64 {
	ids := make([]uint64, len(numbers))
	if len(numbers) == 0 {
		return ids
	}
	least, most := slices.Min(numbers), slices.Max(numbers)
	found := make(map[uint32]uint64, len(numbers))
	for _, n := range numbers {
		found[n] = 0
	}
	check := func(n uint32, id uint64) {
		if _, wanted := found[n]; wanted {
			found[n] = id
		}
	}
	t.ids.each(func(e *entry) {
		if !e.isPage() {
			check(e.value-1, e.id())
			return
		}
		first := e.id() &^ (pageSize - 1)
		for place, n := range t.pages[e.page()] {
			if n--; n-least <= most-least && n != math.MaxUint32 {
				check(n, first+uint64(place))
			}
		}
	})
	for i, n := range numbers {
		ids[i] = found[n]
	}
	return ids
}

// Err is an error of the kind [ErrFull] once there were more than [MaxLen]
// distinct ids, for then numbers no longer tell ids apart; else nil.
func (t *Table) Err() error {
	if !t.full {
		return nil
	}
	return fmt.Errorf("numbering blocks: %w: more than %d", ErrFull, MaxLen)
}

// next takes the next free number.
func (t *Table) next() uint32 {
	if t.count == MaxLen {
		t.full = true
		return MaxLen
	}
	t.count++
	return uint32(t.count - 1)
}

func (t *Table) mayOpenPage() bool {
	return len(t.pages)*pageSize < placesPerID*t.count+firstPages*pageSize
}

// openPage opens the page of id, moves the ids to it that the hash table has
// of its range, and turns to it.
func (t *Table) openPage(id uint64) {
	p := new(page)
	t.ids.replaceByPage(id, uint32(len(t.pages)), p)
	t.pages = append(t.pages, p)
	t.turnTo(p, id)
}

func (t *Table) turnTo(p *page, id uint64) { t.current, t.upper = p, id>>pageBits }
