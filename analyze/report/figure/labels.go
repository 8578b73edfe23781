package figure

// obstacles holds the shapes that the labels of points avoid.
type obstacles struct {
	boxes []rect
	lines [][]point
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

// drawPointLabels labels the points of lines of few, where there is room.
func (p *panel) drawPointLabels(on surface) {
	around := obstacles{boxes: p.markBoxes()}
	for _, f := range p.marks {
		around.lines = append(around.lines, []point{{f.x, p.frame.top}, {f.x, p.frame.bottom}})
	}
	for _, l := range p.sideLabels() {
		around.lines = append(around.lines, []point{{p.frame.left, l.line}, {p.frame.right, l.line}})
	}
	var labelled []*Series
	for i := range p.fig.Series {
		s := &p.fig.Series[i]
		if s.Kind == Line && s.points() <= fewPoints {
			labelled = append(labelled, s)
		}
		if s.points() > fewPoints || s.Kind != Line && s.Kind != Points {
			continue
		}
		for _, line := range p.outline(s) {
			for _, at := range line {
				around.boxes = append(around.boxes, rect{at.x - dotRadius, at.y - dotRadius, at.x + dotRadius, at.y + dotRadius})
			}
			if s.Kind == Line && len(line) > 1 {
				around.lines = append(around.lines, line)
			}
		}
	}
	for _, s := range labelled {
		for i := range s.points() {
			if at, ok := p.place(s.X[i], s.Y[i]); ok && p.frame.holds(at) && s.label(i) != "" {
				p.drawPointLabel(on, at, s.label(i), &around)
			}
		}
	}
}

// drawPointLabel tries the corners of the point, first the one above a rising curve.
func (p *panel) drawPointLabel(on surface, at point, label string, around *obstacles) {
	text := pointText.fit(label, 160)
	width := pointText.width(text)
	for _, from := range []point{{-5 - width, -5}, {5, -5}, {5, 13}, {-5 - width, 13}} {
		base := point{at.x + from.x, at.y + from.y}
		box := rect{base.x - 2, base.y - 8, base.x + width + 2, base.y + 1}
		inside := box.left >= p.frame.left && box.right <= p.right+edge/2 && box.top >= p.frame.top-8 && box.bottom <= p.frame.bottom
		if inside && around.leave(box) {
			box.top, box.bottom = box.top-2, box.bottom+2 // accents and descenders
			around.boxes = append(around.boxes, box)
			on.text(base, text, pointText)
			return
		}
	}
}
