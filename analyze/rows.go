package analyze

import (
	"cmp"
	"math"
	"slices"

	"moontide/trace"
	"moontide/trace/block"
)

// row is what is kept of a request: 16 bytes.
type row struct {
	ms    float64 // arrival, or the delay of an untimed row
	isl   int32
	flags uint32 // and OSL, which takes 27 bits
}

const (
	hasIDs = 1 << 31
	// estimated is set if the arrival is no timestamp but derived from a delay.
	estimated = 1 << 30
	untimed   = 1 << 29
	// hasAfter is set if a row names others that it waits for.
	hasAfter = 1 << 28

	allFlags = hasIDs | estimated | untimed | hasAfter
)

func rowOf(r *trace.Request, ids bool) row {
	k := row{ms: r.Timestamp.Value, isl: int32(r.InputLength), flags: uint32(r.OutputLength)}
	if !r.Timestamp.Set {
		k.ms = r.Delay.Value
		k.flags |= untimed
	}
	if ids {
		k.flags |= hasIDs
	}
	if len(r.After) > 0 {
		k.flags |= hasAfter
	}
	return k
}

func (r *row) osl() int32           { return int32(r.flags &^ allFlags) }
func (r *row) has(flag uint32) bool { return r.flags&flag != 0 }
func (r *row) timed() bool          { return !r.has(untimed) }

// at returns the arrival in ms, or NaN.
func (r *row) at() float64 {
	if r.has(untimed) {
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
	order []int32 // numbers of rows
}

func sortByTime(rows *rows) byTime {
	t := byTime{rows: rows}
	for i, r := range rows.all {
		if r.timed() {
			t.order = append(t.order, int32(i))
		}
	}
	slices.SortFunc(t.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(rows.at(int(a)).ms, rows.at(int(b)).ms), int(a-b))
	})
	return t
}

func (t byTime) len() int         { return len(t.order) }
func (t byTime) row(i int) *row   { return t.rows.at(int(t.order[i])) }
func (t byTime) at(i int) float64 { return t.row(i).ms }
