package figure

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
)

// A markLabel is the label of a mark on x, left or right of its line, which extends
// up to it. Row 0 is the lowest.
type markLabel struct {
	mark        *Mark
	x           float64 // of the line
	text        string
	left, right float64 // of the label
	row         int
	shown       bool // has a place for its label
}

const (
	mostMarkRows   = 6
	mostMarkLabels = 12
	markLabelGap   = 4 // between a line and its label
)

func (p *panel) newMarkLabels() []markLabel {
	var all []markLabel
	for i := range p.fig.Marks {
		m := &p.fig.Marks[i]
		if m.OnY || !p.fig.X.drawable(m.At) {
			continue
		}
		x := p.x.at(m.At)
		if x < p.frame.left-0.5 || x > p.frame.right+0.5 {
			continue
		}
		all = append(all, markLabel{mark: m, x: round(x) + 0.5, text: markText.fit(m.Label, p.right-p.left)})
	}
	// If not all labels fit, drop those of the last marks.
	for n := min(len(all), mostMarkLabels); n > 0; n-- {
		for rows := 1; rows <= mostMarkRows; rows++ {
			steps := 5000
			if p.placeMarkLabels(all[:n], 0, rows, &steps) {
				return all
			}
		}
	}
	return all
}

// placeMarkLabels places the labels from the i-th on by an exhaustive search that
// ends when it runs out of steps.
func (p *panel) placeMarkLabels(all []markLabel, i, rows int, steps *int) bool {
	if i == len(all) {
		return true
	}
	a := &all[i]
	if a.text == "" {
		return p.placeMarkLabels(all, i+1, rows, steps)
	}
	width := markText.width(a.text)
	for row := range rows {
		for _, left := range []float64{a.x + markLabelGap, a.x - markLabelGap - width} {
			if *steps--; *steps < 0 {
				a.shown = false
				return false
			}
			a.left, a.right, a.row, a.shown = left, left+width, row, true
			if left < p.leftOf(row) || a.right > p.right+edge/2 || !fitsNextTo(all[:i], a) {
				continue
			}
			if p.placeMarkLabels(all, i+1, rows, steps) {
				return true
			}
		}
	}
	a.shown = false
	return false
}

// leftOf returns where the labels of a row may start: those of the lowest right of the
// highest tick of y.
func (p *panel) leftOf(row int) float64 {
	if row == 0 {
		return p.frame.left - 2
	}
	return p.left - 1
}

// fitsNextTo reports whether a touches no label in its row and no line crosses a
// label.
func fitsNextTo(others []markLabel, a *markLabel) bool {
	for i := range others {
		b := &others[i]
		if !b.shown {
			continue
		}
		low, high := a, b
		if b.row < a.row {
			low, high = b, a
		}
		if a.row == b.row && a.left < b.right+2*markLabelGap && b.left < a.right+2*markLabelGap {
			return false
		}
		// The higher line crosses the lower row. In the same row, each line is
		// next to the other's label.
		crosses := high.x > low.left-2 && high.x < low.right+2
		if a.row == b.row {
			crosses = crosses || low.x > high.left-2 && low.x < high.right+2
		}
		if crosses {
			return false
		}
	}
	return true
}

func rowsOf(labels []markLabel) int {
	n := 0
	for _, f := range labels {
		if f.shown {
			n = max(n, f.row+1)
		}
	}
	return n
}

func (p *panel) drawMarks(on surface) {
	for _, f := range p.marks {
		top := p.frame.top
		on.begin("mark", "at", compact(f.x))
		if f.shown {
			base := p.markBase(f.row)
			top = base - markText.size + 1
			on.text(point{f.left, base}, f.text, f.mark.letters())
		}
		p.drawMark(on, f.mark, p.fig.X, []point{{f.x, top}, {f.x, p.frame.bottom}})
		on.end()
	}
	p.drawSideMarks(on)
}

// markBase returns the baseline of a row of labels.
func (p *panel) markBase(row int) float64 { return p.frame.top - 4 - float64(row)*markHeight }

func (m *Mark) letters() letters {
	l := markText
	if m.Limit {
		l.color = alarm
	}
	return l
}

func (p *panel) drawMark(on surface, m *Mark, a Axis, line []point) {
	pen := pen{stroke: normal, width: 1.25}
	if m.Limit {
		pen.stroke, pen.width = alarm, 1.75
	}
	if m.Dashed {
		pen.dash, pen.width = []vg.Length{3, 3}, 1
	}
	if tip := a.Text(m.At); !strings.Contains(m.Label, tip) {
		on.path([][]point{line}, pen, m.Label+": "+tip)
	} else {
		on.path([][]point{line}, pen, m.Label)
	}
}

// A sideLabel is a mark on y with its label right of the frame.
type sideLabel struct {
	mark *Mark
	line float64 // y of the line
	text string  // "" without a place for it
}

// base is where the label begins.
func (l sideLabel) base(p *panel) point { return point{p.frame.right + 5, l.line + 4} }

// sideLabels returns the marks on y; a label is left out if it is not clear of those
// before, and of the labels and ticks of x.
func (p *panel) sideLabels() (all []sideLabel) {
	top := p.frame.top + 4
	for _, f := range p.marks {
		if f.shown && f.right > p.frame.right {
			top = p.frame.top + markHeight
		}
	}
	for i := range p.fig.Marks {
		m := &p.fig.Marks[i]
		if !m.OnY || !p.fig.Y.drawable(m.At) {
			continue
		}
		label := sideLabel{mark: m, line: round(p.y.at(m.At)) + 0.5}
		if label.line < p.frame.top-1 || label.line > p.frame.bottom+1 {
			continue
		}
		near := func(other sideLabel) bool { return other.text != "" && math.Abs(other.line-label.line) < markHeight-2 }
		if label.line >= top-8 && !slices.ContainsFunc(all, near) {
			label.text = markText.fit(m.Label, p.right-p.frame.right-5)
		}
		all = append(all, label)
	}
	return all
}

func (p *panel) drawSideMarks(on surface) {
	for _, l := range p.sideLabels() {
		on.begin("side mark", "at", compact(l.line))
		p.drawMark(on, l.mark, p.fig.Y, []point{{p.frame.left, l.line}, {p.frame.right, l.line}})
		if l.text != "" {
			on.text(l.base(p), l.text, l.mark.letters())
		}
		on.end()
	}
}

// markBoxes returns where the labels of marks are, with room for descenders above.
func (p *panel) markBoxes() (boxes []rect) {
	for _, f := range p.marks {
		if f.shown {
			boxes = append(boxes, markText.box(point{f.left, p.markBase(f.row)}, f.text))
		}
	}
	for _, l := range p.sideLabels() {
		if l.text != "" {
			boxes = append(boxes, markText.box(l.base(p), l.text))
		}
	}
	for i := range boxes {
		boxes[i].top -= 2
	}
	return boxes
}

// obstacles holds the shapes that the labels of points avoid.
type obstacles struct {
	boxes []rect
	lines [][]point
}

func (o *obstacles) clear(box rect) bool {
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
			if at, ok := p.position(s.X[i], s.Y[i]); ok && p.frame.holds(at) && s.label(i) != "" {
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
		if inside && around.clear(box) {
			box.top, box.bottom = box.top-2, box.bottom+2 // accents and descenders
			around.boxes = append(around.boxes, box)
			on.text(base, text, pointText)
			return
		}
	}
}
