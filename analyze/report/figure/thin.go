package figure

import (
	"maps"
	"math"
	"slices"
)

// thinner reduces a polyline to the points that make a visible difference: of
// consecutive points in one column of pixels it keeps the first, the lowest, the
// highest and the last. The stroke then covers the same pixels and every peak
// stays, which neither sampling nor averaging guarantees.
//
// The result has at most four points per column if x is monotonic, and at most
// maxPoints otherwise.
type thinner struct {
	from, width float64 // start of the columns and their width
	columns     float64

	lines  [][]point // finished ones
	line   []point
	group  extremes
	column float64
	broken bool // a gap since the last point
	gaps   bool // whether gaps are kept
}

// maxPoints is the maximum number of points drawn per series.
const maxPoints = 16_384

func newThinner(from, to, column float64) *thinner {
	return &thinner{from: from, width: column, columns: math.Ceil((to - from) / column), gaps: true}
}

// add appends a point to the line.
func (t *thinner) add(p point) {
	// Everything outside the plot is one column on either side.
	column := min(max(math.Floor((p.x-t.from)/t.width), -1), t.columns)
	switch {
	case t.group.empty():
	case column != t.column:
		t.line = t.group.appendTo(t.line)
		t.group = extremes{}
		if t.broken && t.gaps {
			t.lines, t.line = append(t.lines, t.line), nil
		}
	}
	// A gap within a column is narrower than the stroke and cannot be seen.
	t.broken, t.column = false, column
	t.group.add(p)
	if len(t.line) > 4*maxPoints || len(t.lines) > maxPoints {
		t.coarsen()
	}
}

// gap separates the next point from the last.
func (t *thinner) gap() { t.broken = true }

// result ends the polyline and returns its unbroken parts.
func (t *thinner) result() [][]point {
	if !t.group.empty() {
		t.line = t.group.appendTo(t.line)
		t.group = extremes{}
	}
	if len(t.line) > 0 {
		t.lines, t.line = append(t.lines, t.line), nil
	}
	total := 0
	for _, line := range t.lines {
		total += len(line)
	}
	if total > maxPoints {
		t.coarsen()
		t.lines, t.line = [][]point{t.line}, nil
	}
	return t.lines
}

// coarsen handles lines that run back and forth: it keeps the extremes of
// sections of the line instead of columns, and drops gaps.
func (t *thinner) coarsen() {
	all := append(slices.Concat(t.lines...), t.line...)
	t.lines, t.gaps = nil, false
	section := max(1, (6*len(all)+maxPoints-1)/maxPoints)
	t.line = make([]point, 0, maxPoints)
	for part := range slices.Chunk(all, section) {
		var group extremes
		for _, p := range part {
			group.add(p)
		}
		t.line = group.appendTo(t.line)
	}
}

// extremes holds the points of a group that must be kept: first, last, and the
// farthest in each of the four directions, with their indices in the group.
type extremes struct {
	n     int
	kept  [6]point
	place [6]int
}

// Indices of the extremes in the arrays.
const (
	keepFirst = iota
	keepLow
	keepHigh
	keepLeft
	keepRight
	keepLast
)

func (e *extremes) empty() bool { return e.n == 0 }

func (e *extremes) add(p point) {
	set := func(i int) { e.kept[i], e.place[i] = p, e.n }
	if e.n == 0 {
		for i := range e.kept {
			set(i)
		}
	}
	if p.y < e.kept[keepLow].y {
		set(keepLow)
	}
	if p.y > e.kept[keepHigh].y {
		set(keepHigh)
	}
	if p.x < e.kept[keepLeft].x {
		set(keepLeft)
	}
	if p.x > e.kept[keepRight].x {
		set(keepRight)
	}
	set(keepLast)
	e.n++
}

// appendTo appends each kept point once, in the order of the line.
func (e *extremes) appendTo(line []point) []point {
	for place := -1; ; {
		next := -1
		for i, at := range e.place {
			if at > place && (next < 0 || at < e.place[next]) {
				next = i
			}
		}
		if next < 0 {
			return line
		}
		line, place = append(line, e.kept[next]), e.place[next]
	}
}

// maxDots is the maximum number of dots drawn per series. This many cover most
// of a plot.
const maxDots = 6000

// thinDots keeps one of several overlapping dots, using a grid of cells at
// least as large as the given one and large enough to stay within maxDots. The
// dots farthest in each direction are always kept.
func thinDots(dots []point, cell float64) []point {
	kept := dots
	for len(kept) > maxDots {
		kept = oneInEach(cell, dots)
		// If dots are everywhere, this is the right size immediately.
		cell *= max(1.1, math.Sqrt(float64(len(kept))/maxDots))
	}
	return kept
}

// oneInEach keeps an arbitrary dot in each cell; keeping the first would draw
// the grid if dots are sorted.
func oneInEach(cell float64, dots []point) []point {
	type place struct{ x, y int32 }
	scattered := func(i int) uint32 { return (uint32(i) + 1) * 2654435761 }
	chosen := make(map[place]int, maxDots)
	var far extremes
	for i, p := range dots {
		far.add(p)
		at := place{int32(math.Floor(p.x / cell)), int32(math.Floor(p.y / cell))}
		if before, taken := chosen[at]; !taken || scattered(i) < scattered(before) {
			chosen[at] = i
		}
	}
	places := slices.AppendSeq(far.place[:], maps.Values(chosen))
	slices.Sort(places)
	var kept []point
	for _, i := range slices.Compact(places) {
		kept = append(kept, dots[i])
	}
	return kept
}
