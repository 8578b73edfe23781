package figure

import (
	"fmt"
	"math"
)

const (
	barOpacity = 0.65 // marks can be seen on it
	dotRadius  = 3.2
	// fewPoints is the number of points up to which each has a dot and a tooltip.
	fewPoints = 60
	// fewDots is the number of dots up to which they are seen one by one.
	fewDots = 300
	// oneBar is the least width of a bar that has a gap to the next one.
	oneBar = 3
)

func (p *panel) drawSeries(on surface, index int) {
	s := &p.fig.Series[index]
	on.begin("series "+s.Kind.class(), "name", s.Name)
	defer on.end()
	switch s.Kind {
	case Bars:
		p.drawBars(on, s, index)
	case Points:
		p.drawPoints(on, s, index)
	default:
		p.stroke(on, p.outline(s), s, index)
		if s.Kind == Line && s.points() <= fewPoints {
			p.drawPoints(on, s, index)
		}
	}
}

// class names how scripts read a value from the series.
func (k Kind) class() string {
	switch k {
	case Bars:
		return "bars"
	case Points:
		return "points"
	}
	return "line"
}

// outline returns the line of a series, not yet clipped to the frame, in parts between gaps.
func (p *panel) outline(s *Series) (lines [][]point) {
	joined := false
	points := 0
	for i := range s.points() {
		at, ok := p.place(s.X[i], s.Y[i])
		if !ok {
			joined = joined && len(lines) > maxGaps
			continue
		}
		if !joined {
			lines, joined = append(lines, nil), true
		} else if s.Kind == Steps {
			last := lines[len(lines)-1]
			lines[len(lines)-1] = append(last, point{at.x, last[len(last)-1].y})
			points++
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], at)
		points++
	}
	for i, line := range lines {
		lines[i] = thinned(line, points)
	}
	return lines
}

func (p *panel) place(x, y float64) (point, bool) {
	if !p.fig.X.drawable(x) || !p.fig.Y.drawable(y) {
		return point{}, false
	}
	return point{p.x.at(x), p.y.at(y)}, true
}

// floor returns the y coordinate where fills start: 0 if the axis includes it.
func (p *panel) floor() float64 {
	if p.fig.Y.Log {
		return p.frame.bottom
	}
	return min(max(p.y.at(0), p.frame.top), p.frame.bottom)
}

// stroke draws the lines; isolated points between two gaps become dots.
func (p *panel) stroke(on surface, lines [][]point, s *Series, index int) {
	var visible [][]point
	var alone []point
	for _, line := range lines {
		for _, part := range p.frame.clipLine(line) {
			if len(part) == 1 {
				alone = append(alone, part[0])
			} else {
				visible = append(visible, part)
			}
		}
	}
	if len(visible) > 0 {
		on.path(visible, s.line(index), s.Name)
	}
	on.dots(alone, dotRadius/1.5, s.color(index), 1, s.Name)
}

// drawPoints draws few dots with a tooltip each, and many as one translucent shape.
func (p *panel) drawPoints(on surface, s *Series, index int) {
	var dots []point
	few := s.points() <= fewPoints
	for i := range s.points() {
		at, ok := p.place(s.X[i], s.Y[i])
		if !ok || !p.frame.holds(at) {
			continue
		}
		if few {
			on.dots([]point{at}, dotRadius, s.color(index), 1, p.tip(s, i))
		}
		dots = append(dots, at)
	}
	switch {
	case few:
	case len(dots) < fewDots:
		on.dots(dots, dotRadius, s.color(index), 1, s.Name)
	default:
		on.dots(thinDots(dots), 1.6, s.color(index), 0.6, s.Name)
	}
}

func (p *panel) tip(s *Series, i int) string {
	text := p.fig.X.Text(s.X[i]) + ", " + p.fig.Y.Text(s.Y[i])
	if label := s.label(i); label != "" {
		text = label + ": " + text
	}
	return p.named(s, text)
}

// named adds the name of a series, unless it is the only one.
func (p *panel) named(s *Series, tip string) string {
	if s.Name == "" || len(p.fig.Series) == 1 {
		return tip
	}
	return s.Name + ", " + tip
}

// edges returns the ends of bar i. On a log axis, a bar from 0 starts at the frame.
func (p *panel) edges(s *Series, i int) (left, right float64, ok bool) {
	x0, x1 := s.X[i], s.X[i+1]
	if x0 > x1 {
		x0, x1 = x1, x0
	}
	if !(x0 >= -huge && p.fig.X.drawable(x1)) {
		return 0, 0, false
	}
	return p.x.at(x0), p.x.at(x1), true
}

// barTop returns the top of a bar. Nonzero bars have a minimum height, so that the
// tail of a histogram remains visible.
func (p *panel) barTop(v float64) float64 {
	if p.fig.Y.Log && v <= 0 {
		return p.frame.bottom
	}
	top, floor := p.y.at(v), p.floor()
	if v > 0 {
		return min(top, floor-1)
	} else if v < 0 {
		return max(top, floor+1)
	}
	return floor
}

func (p *panel) drawBars(on surface, s *Series, index int) {
	for i := range s.points() {
		left, right, ok := p.edges(s, i)
		if !ok || !(math.Abs(s.Y[i]) <= huge) || s.Y[i] == 0 {
			continue
		}
		if right-left > oneBar {
			right-- // gap to the next bar
		}
		top, floor := p.barTop(s.Y[i]), p.floor()
		bar := rect{max(left, p.frame.left), max(min(top, floor), p.frame.top), min(right, p.frame.right), min(max(top, floor), p.frame.bottom)}
		if bar.left >= bar.right {
			continue
		}
		tip := fmt.Sprintf("%s – %s: %s", p.fig.X.Text(s.X[i]), p.fig.X.Text(s.X[i+1]), p.fig.Y.Text(s.Y[i]))
		on.path([][]point{bar.corners()}, pen{fill: s.color(index), opacity: barOpacity}, p.named(s, tip))
	}
}
