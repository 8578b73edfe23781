package figure

import "slices"

// drawPointLabels labels the points of lines of few, where there is room.
func (p *panel) drawPointLabels(on surface) {
	around := p.markBoxes()
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
				around = append(around, rect{at.x - dotRadius, at.y - dotRadius, at.x + dotRadius, at.y + dotRadius})
			}
		}
	}
	for _, s := range labelled {
		for i := range s.points() {
			if at, ok := p.place(s.X[i], s.Y[i]); ok && p.frame.holds(at) && s.label(i) != "" {
				around = p.drawPointLabel(on, at, s.label(i), around)
			}
		}
	}
}

// drawPointLabel tries the corners of the point, first the one above a rising curve. It
// returns what further labels avoid.
func (p *panel) drawPointLabel(on surface, at point, label string, around []rect) []rect {
	text := pointText.fit(label, 160)
	width := pointText.width(text)
	for _, from := range []point{{-5 - width, -5}, {5, -5}, {5, 13}, {-5 - width, 13}} {
		base := point{at.x + from.x, at.y + from.y}
		box := rect{base.x - 2, base.y - 8, base.x + width + 2, base.y + 1}
		inside := box.left >= p.frame.left && box.right <= p.right+edge/2 && box.top >= p.frame.top-8 && box.bottom <= p.frame.bottom
		if inside && !slices.ContainsFunc(around, box.overlaps) {
			box.top, box.bottom = box.top-2, box.bottom+2 // accents and descenders
			on.text(base, text, pointText)
			return append(around, box)
		}
	}
	return around
}
