package figure

import (
	"math/rand/v2"
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
	maxDots = 1500
)

// thinned returns a line of bounded length that keeps the extremes of short sections, and
// so every peak. points is the number of points in all lines of the series.
func thinned(line []point, points int) (short []point) {
	for section := range slices.Chunk(line, (6*points+maxPoints-1)/maxPoints) {
		short = appendExtremes(short, section)
	}
	return short
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

// thinDots keeps the dots farthest in each direction and, of too many, arbitrary ones: every
// so manieth would show the order of sorted dots.
func thinDots(dots []point) []point {
	if len(dots) <= maxDots {
		return dots
	}
	kept := appendExtremes(nil, dots)
	scattered := rand.New(rand.NewPCG(1, 1))
	for range maxDots - len(kept) {
		kept = append(kept, dots[scattered.IntN(len(dots))])
	}
	return kept
}
