package analyze

import (
	"cmp"
	"math"
	"slices"

	"moontide/trace"
	"moontide/trace/block"
)

// row is what is kept of a request: 24 bytes.
type row struct {
	ms       float64 // arrival, or the delay of an untimed row
	isl, osl int32
	timed    bool // its arrival is known
	// estimated is set if the arrival is no timestamp but derived from a delay.
	estimated bool
	hasIDs    bool
	hasAfter  bool // it names others that it waits for
}

func rowOf(r *trace.Request, ids bool) row {
	k := row{ms: r.Timestamp.Value, isl: int32(r.InputLength), osl: int32(r.OutputLength), timed: r.Timestamp.Set, hasIDs: ids, hasAfter: len(r.After) > 0}
	if !k.timed {
		k.ms = r.Delay.Value
	}
	return k
}

// at returns the arrival in ms, or NaN.
func (r *row) at() float64 {
	if !r.timed {
		return math.NaN()
	}
	return r.ms
}

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
	order []int32 // numbers of rows; nil if all have a time and are in order
}

func sortByTime(rows *rows) byTime {
	last, timed, inOrder := math.Inf(-1), 0, true
	for _, r := range rows.all {
		inOrder = inOrder && r.timed && r.ms >= last
		last = r.ms
		if r.timed {
			timed++
		}
	}
	if inOrder {
		return byTime{rows: rows}
	}
	t := byTime{rows, make([]int32, 0, timed)}
	for i, r := range rows.all {
		if r.timed {
			t.order = append(t.order, int32(i))
		}
	}
	slices.SortFunc(t.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(rows.at(int(a)).ms, rows.at(int(b)).ms), int(a-b))
	})
	return t
}

func (t byTime) len() int {
	if t.order == nil {
		return t.rows.len()
	}
	return len(t.order)
}

func (t byTime) row(i int) *row {
	if t.order == nil {
		return t.rows.at(i)
	}
	return t.rows.at(int(t.order[i]))
}

func (t byTime) at(i int) float64 { return t.row(i).ms }
