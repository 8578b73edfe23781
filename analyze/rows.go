package analyze

import (
	"math"
	"slices"

	"moontide/trace/block"
)

// row is what is kept of a request: 16 bytes.
type row struct {
	at    float64 // arrival in ms, or NaN
	isl   int32
	flags uint32 // and OSL
}

const (
	hasIDs = 1 << 31
	// estimated is set if at is no timestamp but derived from a delay.
	estimated = 1 << 30
)

func (r *row) osl() int32           { return int32(r.flags &^ (hasIDs | estimated)) }
func (r *row) has(flag uint32) bool { return r.flags&flag != 0 }
func (r *row) timed() bool          { return !math.IsNaN(r.at) }

// rows are the requests in the order of the trace.
type rows struct{ list block.List[row] }

func (l *rows) len() int      { return l.list.Len() }
func (l *rows) at(i int) *row { return l.list.At(uint32(i)) }

// all yields the rows with their numbers.
func (l *rows) all(yield func(int, *row) bool) {
	for i := range l.len() {
		if !yield(i, l.at(i)) {
			return
		}
	}
}

// byTime holds the rows with a time in order of time.
type byTime struct {
	rows  *rows
	order []int32 // numbers of rows; nil if all rows have a time and are in order
}

func sortByTime(rows *rows) byTime {
	last, inOrder, timed := math.Inf(-1), true, 0
	for _, r := range rows.all {
		if r.timed() {
			inOrder = inOrder && r.at >= last
			last = r.at
			timed++
		}
	}
	t := byTime{rows: rows}
	if inOrder && timed == rows.len() {
		return t
	}
	t.order = make([]int32, 0, timed)
	for i, r := range rows.all {
		if r.timed() {
			t.order = append(t.order, int32(i))
		}
	}
	if !inOrder {
		slices.SortFunc(t.order, func(a, b int32) int {
			switch x, y := t.rows.at(int(a)).at, t.rows.at(int(b)).at; {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return int(a) - int(b)
		})
	}
	return t
}

func (t byTime) len() int {
	if t.order == nil {
		return t.rows.len()
	}
	return len(t.order)
}

func (t byTime) row(i int) *row {
	if t.order != nil {
		i = int(t.order[i])
	}
	return t.rows.at(i)
}

func (t byTime) at(i int) float64 { return t.row(i).at }
