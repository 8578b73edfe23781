package figure

import (
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A point in units of the picture: x to the right, y down.
type point struct{ x, y float64 }

// A rect is a part of the picture.
type rect struct{ left, top, right, bottom float64 }

func (r rect) holds(p point) bool {
	// Half a unit more, for points exactly on the frame.
	return p.x >= r.left-0.5 && p.x <= r.right+0.5 && p.y >= r.top-0.5 && p.y <= r.bottom+0.5
}

func (r rect) overlaps(s rect) bool {
	return r.left < s.right && s.left < r.right && r.top < s.bottom && s.top < r.bottom
}

func (r rect) corners() []point {
	return []point{{r.left, r.top}, {r.right, r.top}, {r.right, r.bottom}, {r.left, r.bottom}}
}

// canvas clips coordinates, because clip paths of SVG need ids, which clash on a
// page.
func (r rect) canvas() *draw.Canvas {
	return &draw.Canvas{Rectangle: vg.Rectangle{Min: point{r.left, r.top}.vg(), Max: point{r.right, r.bottom}.vg()}}
}

// clipLine returns the parts of a polyline that are inside r.
func (r rect) clipLine(line []point) [][]point {
	if !slices.ContainsFunc(line, func(p point) bool { return !r.holds(p) }) {
		return [][]point{line}
	}
	var parts [][]point
	for _, part := range r.canvas().ClipLinesXY(toVG(line)) {
		parts = append(parts, fromVG(part))
	}
	return parts
}

// vg is the same coordinates for vg, whatever the direction of y.
func (p point) vg() vg.Point { return vg.Point{X: vg.Length(p.x), Y: vg.Length(p.y)} }

func toVG(points []point) []vg.Point {
	converted := make([]vg.Point, len(points))
	for i, p := range points {
		converted[i] = p.vg()
	}
	return converted
}

func fromVG(points []vg.Point) []point {
	converted := make([]point, len(points))
	for i, p := range points {
		converted[i] = point{float64(p.X), float64(p.Y)}
	}
	return converted
}
