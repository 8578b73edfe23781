package figure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
		at, ok := p.position(s.X[i], s.Y[i])
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

func (p *panel) position(x, y float64) (point, bool) {
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
		at, ok := p.position(s.X[i], s.Y[i])
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

// A legend names the series of a figure, in rows above its plot.
type legend struct {
	entries []entry
	rows    int
}

// An entry is a sample of a series and its name.
type entry struct {
	series *Series // nil for the last entry, which counts the missing ones
	index  int
	at     point // from the upper left corner of the legend
	name   string
}

const (
	sampleWidth    = 22
	sampleGap      = 6
	entryGap       = 18
	mostLegendRows = 4
)

// newLegend names series once if they have the same name. It fills a few rows and counts the entries that do not fit.
func newLegend(f *Figure, width float64) legend {
	var first []int // the first series of each name
	seen := map[string]bool{"": true}
	for i := range f.Series {
		if name := f.Series[i].Name; !seen[name] {
			seen[name], first = true, append(first, i)
		}
	}
	named := len(first)
	if named < 2 {
		return legend{}
	}
	l := legend{rows: 1}
	var at point
	for _, i := range first {
		s := &f.Series[i]
		name := legendText.fit(s.Name, width-sampleWidth-sampleGap)
		room := sampleWidth + sampleGap + legendText.width(name)
		if at.x > 0 && at.x+room > width {
			at = point{0, at.y + legendHeight}
			l.rows++
		}
		if l.rows > mostLegendRows {
			l.entries = append(l.entries, entry{at: at, name: fmt.Sprintf("and %d more", named-len(l.entries))})
			return l
		}
		l.entries = append(l.entries, entry{s, i, at, name})
		at.x += room + entryGap
	}
	return l
}

func (l legend) draw(on surface, corner point) {
	for _, e := range l.entries {
		at := point{corner.x + e.at.x, corner.y + e.at.y}
		if e.series != nil {
			on.begin("entry", "name", e.series.Name)
			e.drawSample(on, point{at.x, at.y + 8})
			at.x += sampleWidth + sampleGap
		}
		on.text(point{at.x, at.y + 12}, e.name, legendText)
		if e.series != nil {
			on.end()
		}
	}
}

func (e entry) drawSample(on surface, at point) {
	p := e.series.line(e.index)
	line := []point{at, {at.x + sampleWidth, at.y}}
	switch e.series.Kind {
	case Points:
		dot := []point{{at.x + sampleWidth/2, at.y}}
		on.dots(dot, dotRadius, p.stroke, 1, "")
		return
	case Bars:
		box := rect{at.x, at.y - 6, at.x + sampleWidth, at.y + 5}.corners()
		on.path([][]point{box}, pen{fill: p.stroke, opacity: barOpacity}, "")
		line = box[:2]
	}
	on.path([][]point{line}, p, "")
}
