package figure

import "math"

// obstacles holds the shapes that the labels of points avoid.
type obstacles struct {
	boxes []rect
	lines [][]point
	dots  []point // with labels of their own
}

// ambiguous reports whether a label at box could be that of another dot than its own.
func (o *obstacles) ambiguous(box rect, own point) bool {
	for _, dot := range o.dots {
		if dot != own && box.from(dot) < box.from(own) {
			return true
		}
	}
	return false
}

// from returns the distance of a point.
func (r rect) from(p point) float64 {
	return math.Hypot(max(r.left-p.x, 0, p.x-r.right), max(r.top-p.y, 0, p.y-r.bottom))
}

func (o *obstacles) leave(box rect) bool {
	for _, other := range o.boxes {
		if box.overlaps(other) {
			return false
		}
	}
	for _, line := range o.lines {
		if len(box.clipLine(line)) > 0 {
			return false
		}
	}
	return true
}

func (p *panel) drawPointLabels(on surface) {
	around := obstacles{boxes: p.markBoxes()}
	for _, f := range p.marks {
		around.lines = append(around.lines, []point{{f.x, p.frame.top}, {f.x, p.frame.bottom}})
	}
	for _, m := range p.fig.Marks {
		if y := p.y.at(m.At); m.OnY && p.fig.Y.drawable(m.At) {
			around.lines = append(around.lines, []point{{p.frame.left, y}, {p.frame.right, y}})
		}
	}
	var dotted []*Series // those that may have labels
	for i := range p.fig.Series {
		if s := &p.fig.Series[i]; (s.Kind == Line || s.Kind == Points) && s.points() <= fewPoints {
			dotted = append(dotted, s)
		}
	}
	for _, s := range dotted {
		for _, line := range p.outline(s) {
			for _, at := range line {
				around.dots = append(around.dots, at)
				around.boxes = append(around.boxes, rect{at.x - dotRadius, at.y - dotRadius, at.x + dotRadius, at.y + dotRadius})
			}
			if s.Kind == Line && len(line) > 1 {
				around.lines = append(around.lines, line)
			}
		}
	}
	for _, s := range dotted {
		for i := range s.points() {
			if at, ok := p.place(s.X[i], s.Y[i]); ok && p.frame.holds(at) && s.label(i) != "" && !s.TipsOnly {
				p.drawPointLabel(on, at, s.label(i), &around)
			}
		}
	}
}

// drawPointLabel tries the corners of the point, first the one above a rising curve.
func (p *panel) drawPointLabel(on surface, at point, label string, around *obstacles) {
	text := pointText.fit(label, 160)
	width := pointText.width(text)
	for _, from := range []point{{-5 - width, -5}, {5, -5}, {5, 13}, {-5 - width, 13}, {7, 4}, {-7 - width, 4}} {
		base := point{at.x + from.x, at.y + from.y}
		box := rect{base.x - 2, base.y - 8, base.x + width + 2, base.y + 1}
		inside := box.left >= p.frame.left && box.right <= p.right+edge/2 && box.top >= p.frame.top-8 && box.bottom <= p.frame.bottom
		if inside && around.leave(box) && !around.ambiguous(box, at) {
			box.top, box.bottom = box.top-2, box.bottom+2 // accents and descenders
			around.boxes = append(around.boxes, box)
			on.text(base, text, pointText)
			return
		}
	}
}
