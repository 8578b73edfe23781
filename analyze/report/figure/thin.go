package figure

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

const (
	// maxPoints is about the maximum number of points drawn per line: several in
	// each column of pixels.
	maxPoints = 1200
	// maxGaps is the maximum number of gaps in a line; later ones are not drawn.
	maxGaps = 500
	// maxDots is the maximum number of dots drawn per series. This many cover most
	// of a plot.
	maxDots = 2000
	// precision is by how many units the lines of an SVG may be off.
	precision = 0.15
)

// polyline is a line with gaps. Of too many points it keeps the extremes of short
// sections, so that every peak stays.
type polyline struct {
	section int // length of the sections
	pending []point
	lines   [][]point
	joined  bool // the next point continues the last line
}

// newPolyline expects about this many points.
func newPolyline(points int) *polyline {
	return &polyline{section: (6*points + maxPoints - 1) / maxPoints}
}

func (l *polyline) add(p point) {
	if !l.joined {
		l.lines, l.joined = append(l.lines, nil), true
	}
	if l.pending = append(l.pending, p); len(l.pending) >= l.section {
		l.flush()
	}
}

// gap separates the next point from the last.
func (l *polyline) gap() {
	if len(l.lines) <= maxGaps {
		l.flush()
		l.joined = false
	}
}

func (l *polyline) parts() [][]point {
	l.flush()
	return l.lines
}

func (l *polyline) flush() {
	if len(l.pending) > 0 {
		last := &l.lines[len(l.lines)-1]
		*last = appendExtremes(*last, l.pending)
		l.pending = l.pending[:0]
	}
}

// appendExtremes appends up to six points in their order: the first, the last, and
// the farthest in each direction. It keeps all of up to six points.
func appendExtremes(to, points []point) []point {
	if len(points) <= 6 {
		return append(to, points...)
	}
	var left, right, low, high int
	for i, p := range points {
		if p.x < points[left].x {
			left = i
		}
		if p.x > points[right].x {
			right = i
		}
		if p.y < points[low].y {
			low = i
		}
		if p.y > points[high].y {
			high = i
		}
	}
	kept := [...]int{0, left, right, low, high, len(points) - 1}
	slices.Sort(kept[:])
	for _, i := range slices.Compact(kept[:]) {
		to = append(to, points[i])
	}
	return to
}

// thinDots keeps one of several overlapping dots, using a grid of cells large enough
// to stay within maxDots, and the dots farthest in each direction.
func thinDots(dots []point, cell float64) []point {
	kept := dots
	for len(kept) > maxDots {
		kept = oneInEach(cell, dots)
		// If dots are everywhere, this is the right size immediately.
		cell *= max(1.1, math.Sqrt(float64(len(kept))/maxDots))
	}
	return kept
}

// oneInEach keeps the dots farthest in each direction and an arbitrary one of each cell:
// the first would show the grid if dots are sorted. They are row by row, which takes few
// bytes in an SVG.
func oneInEach(cell float64, dots []point) []point {
	type place struct{ x, y int32 }
	scattered := func(i int) uint32 { return (uint32(i) + 1) * 2654435761 }
	chosen := make(map[place]int, maxDots)
	for i, p := range dots {
		at := place{int32(math.Floor(p.x / cell)), int32(math.Floor(p.y / cell))}
		if before, taken := chosen[at]; !taken || scattered(i) < scattered(before) {
			chosen[at] = i
		}
	}
	kept := appendExtremes(nil, dots)
	rows := slices.SortedFunc(maps.Keys(chosen), func(a, b place) int { return cmp.Or(cmp.Compare(a.y, b.y), cmp.Compare(a.x, b.x)) })
	for _, at := range rows {
		kept = append(kept, dots[chosen[at]])
	}
	return kept
}

// simplified leaves out the points of a line that are within a distance of the line
// without them: the algorithm of Ramer, Douglas and Peucker.
func simplified(line []point, precision float64) []point {
	if len(line) <= 2 {
		return line
	}
	type part struct{ from, to int }
	kept := make([]bool, len(line))
	kept[0], kept[len(line)-1] = true, true
	for rest := []part{{0, len(line) - 1}}; len(rest) > 0; {
		at := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		farthest, far := at.from, precision
		for i := at.from + 1; i < at.to; i++ {
			if d := line[i].from(line[at.from], line[at.to]); d > far {
				farthest, far = i, d
			}
		}
		if farthest > at.from {
			kept[farthest] = true
			rest = append(rest, part{at.from, farthest}, part{farthest, at.to})
		}
	}
	var short []point
	for i, p := range line {
		if kept[i] {
			short = append(short, p)
		}
	}
	return short
}

// from returns the distance of p from the line between a and b.
func (p point) from(a, b point) float64 {
	dx, dy := b.x-a.x, b.y-a.y
	share := 0.0
	if length := dx*dx + dy*dy; length > 0 {
		share = min(max(((p.x-a.x)*dx+(p.y-a.y)*dy)/length, 0), 1)
	}
	return math.Hypot(p.x-a.x-share*dx, p.y-a.y-share*dy)
}
