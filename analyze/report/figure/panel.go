package figure

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/text"
)

// A panel is a figure after layout.
type panel struct {
	fig         *Figure
	dataX       span
	dataY       span
	xr, yr      span
	left, right float64 // of the whole panel
	top         float64
	head        []headLine
	frame       rect // the plot area
	x, y        scale
	xTicks      []tick
	yTicks      []tick
	legend      legend
	marks       []markLabel // of marks on x, above the plot
}

// Heights and distances within a panel.
const (
	titleHeight  = 21
	noteHeight   = 17
	labelHeight  = 20 // of the label of y, which stands above its axis
	tickHeight   = 19 // of labels below the plot
	tickGap      = 7  // between the labels of y and the plot
	legendHeight = 19
	markHeight   = 15
)

// A headLine is a text above the legend and the plot.
type headLine struct {
	text    string
	letters letters
	height  float64
}

func newPanel(f *Figure) *panel {
	p := &panel{fig: f}
	p.dataX, p.dataY = f.extent()
	if f.Title != "" {
		p.head = append(p.head, headLine{f.Title, figureTitle, titleHeight})
	}
	if f.Note != "" {
		p.head = append(p.head, headLine{f.Note, noteText, noteHeight})
	}
	return p
}

func apart(s scale, ticks []tick, size func(string) float64) bool {
	for i := 1; i < len(ticks); i++ {
		a, b := ticks[i-1], ticks[i]
		if math.Abs(s.at(b.at)-s.at(a.at)) < (size(a.label)+size(b.label))/2 {
			return false
		}
	}
	return true
}

// sideMargins sets the limits of both axes and the ticks of y. It returns the space
// needed left and right of the plot.
func (p *panel) sideMargins(room float64) (before, after float64) {
	p.xr = p.fig.X.limits(p.dataX, false)
	p.yr = p.fig.Y.limits(p.dataY, true)
	s := newScale(p.fig.Y, p.yr, plotHeight, 0)
	p.yTicks = p.fig.Y.ticks(p.yr, int(plotHeight/34), func(t []tick) bool {
		return apart(s, t, func(string) float64 { return 15 })
	})
	for _, t := range p.yTicks {
		before = max(before, tickText.width(t.label)+tickGap)
	}
	after = 12 // half a label of x
	for _, m := range p.fig.Marks {
		if m.OnY && p.fig.Y.drawable(m.At) {
			after = max(after, markText.width(markText.fit(m.Label, room*0.3))+6)
		}
	}
	return min(before, room*0.4), min(after, room*0.4)
}

func (p *panel) setAcross(left, right, before, after float64) {
	p.left, p.right = left, right
	p.frame.left, p.frame.right = round(left+before), round(right-after)
	p.x = newScale(p.fig.X, p.xr, p.frame.left, p.frame.right)
	width := p.frame.right - p.frame.left
	p.xTicks = p.fig.X.ticks(p.xr, int(width/58), func(t []tick) bool {
		return apart(p.x, t, func(label string) float64 { return tickText.width(label) + 12 })
	})
	p.legend = newLegend(p.fig, right-left)
	p.marks = p.newMarkLabels()
}

func (p *panel) heights() (above, below float64) {
	above = 8
	for _, line := range p.head {
		above += line.height
	}
	above += float64(p.legend.rows) * legendHeight
	if p.fig.Y.title() != "" {
		above += labelHeight
	}
	above += float64(rowsOf(p.marks)) * markHeight
	below = tickHeight
	if p.fig.X.title() != "" {
		below += labelHeight
	}
	return above, below
}

func (p *panel) setDown(top, plotTop float64) {
	p.top = top
	p.frame.top, p.frame.bottom = round(plotTop), round(plotTop+plotHeight)
	p.y = newScale(p.fig.Y, p.yr, p.frame.bottom, p.frame.top)
}

func (a Axis) title() string {
	switch {
	case a.Unit == "":
		return a.Label
	case a.Label == "":
		return a.Unit
	default:
		return a.Label + " (" + a.Unit + ")"
	}
}

func (p *panel) draw(on surface) {
	f := p.frame
	on.begin("panel", "frame", compact(f.left)+" "+compact(f.top)+" "+compact(f.right)+" "+compact(f.bottom),
		"x", p.fig.X.described(p.xr), "y", p.fig.Y.described(p.yr))
	defer on.end()
	p.drawHead(on)
	p.drawAxes(on)
	if p.dataX.empty() {
		on.text(point{(p.frame.left + p.frame.right) / 2, (p.frame.top+p.frame.bottom)/2 + 4}, "no data", axisLabel.at(text.XCenter))
	}
	on.begin("plot")
	for i := range p.fig.Series {
		p.drawSeries(on, i)
	}
	on.end()
	p.drawMarks(on)
	on.begin("labels")
	p.drawPointLabels(on)
	on.end()
}

func (p *panel) drawHead(on surface) {
	y := p.top
	for _, line := range p.head {
		on.text(point{p.left, y + line.letters.size}, line.letters.fit(line.text, p.right-p.left), line.letters)
		y += line.height
	}
	p.legend.draw(on, point{p.left, y + 3})
	if title := p.fig.Y.title(); title != "" {
		above := p.frame.top - float64(rowsOf(p.marks))*markHeight - 11
		on.text(point{p.left, above}, axisLabel.fit(title, p.right-p.left), axisLabel)
	}
}

func (p *panel) drawAxes(on surface) {
	f := p.frame
	var grid, ticks [][]point
	on.begin("axis y")
	for _, t := range p.yTicks {
		y := round(p.y.at(t.at)) + 0.5
		grid = append(grid, []point{{f.left, y}, {f.right, y}})
		label := tickText.fit(t.label, f.left-tickGap-p.left+1)
		on.text(point{f.left - tickGap, y + 4}, label, tickText.at(text.XRight))
	}
	on.path(grid, pen{stroke: faint, width: 1}, "")
	on.end()
	grid = nil
	on.begin("axis x")
	for _, t := range p.xTicks {
		x := round(p.x.at(t.at)) + 0.5
		grid = append(grid, []point{{x, f.top}, {x, f.bottom}})
		ticks = append(ticks, []point{{x, f.bottom}, {x, f.bottom + 5}})
		half := tickText.width(t.label) / 2
		on.text(point{min(max(x, p.left+half), p.right+edge-half), f.bottom + tickHeight - 2}, t.label, tickText.at(text.XCenter))
	}
	on.path(grid, pen{stroke: faint, width: 1}, "")
	on.path(ticks, pen{stroke: rule, width: 1}, "")
	on.end()
	on.path([][]point{{{f.left, f.bottom + 0.5}, {f.right, f.bottom + 0.5}}}, pen{stroke: rule, width: 1}, "")
	if title := p.fig.X.title(); title != "" {
		center := point{(f.left + f.right) / 2, f.bottom + tickHeight + labelHeight - 5}
		room := 2 * min(center.x-p.left, p.right-center.x)
		on.text(center, axisLabel.fit(title, room), axisLabel.at(text.XCenter))
	}
}

// described returns the scale of an axis for scripts: its quantity, "log" or "linear",
// and both ends.
func (a Axis) described(r span) string {
	kind := "linear"
	if a.Log {
		kind = "log"
	}
	return fmt.Sprintf("%s %s %.9g %.9g", quantities[a.Quantity], kind, r.lo, r.hi)
}

var quantities = map[Quantity]string{Number: "number", Bytes: "bytes", Percent: "percent", Duration: "duration"}

// compact writes a coordinate.
func compact(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// round gives thin lines sharp edges.
func round(v float64) float64 { return math.Floor(v + 0.5) }

// A page is a sheet after layout.
type page struct {
	sheet         *Sheet
	width, height int
	panels        []*panel
	head          []headLine
}

// Distances between the parts of a page.
const (
	edge      = 16 // around everything
	columnGap = 28
	rowGap    = 22
)

// newPage lays out the sheet: first across, because the texts above a plot depend on
// its width.
func newPage(s Sheet, width int) *page {
	columns := make([][]*panel, max(1, min(2, len(s.Figures))))
	p := &page{sheet: &s, width: width}
	for i := range s.Figures {
		panel := newPanel(&s.Figures[i])
		columns[i%2] = append(columns[i%2], panel)
		p.panels = append(p.panels, panel)
	}
	room := float64(width-2*edge-columnGap*(len(columns)-1)) / float64(len(columns))
	for i, column := range columns {
		left := edge + float64(i)*(room+columnGap)
		across(column, left, left+room)
	}
	p.down()
	return p
}

// across places the panels of a column, with equal margins.
func across(column []*panel, left, right float64) {
	var before, after float64
	for _, panel := range column {
		b, a := panel.sideMargins(right - left)
		before, after = max(before, b), max(after, a)
	}
	for _, panel := range column {
		panel.setAcross(left, right, before, after)
	}
}

// down places headings and rows, with the plots of a row aligned.
func (p *page) down() {
	y := float64(edge)
	for _, line := range []headLine{{p.sheet.Title, sheetTitle, sheetTitle.size * 1.4}, {p.sheet.Note, noteText, noteText.size * 1.4}} {
		if line.text = line.letters.fit(line.text, float64(p.width-2*edge)); line.text != "" {
			p.head = append(p.head, line)
			y += line.height
		}
	}
	if y > edge {
		y += 12
	}
	for row := range slices.Chunk(p.panels, 2) {
		var above, below float64
		for _, panel := range row {
			a, b := panel.heights()
			above, below = max(above, a), max(below, b)
		}
		for _, panel := range row {
			panel.setDown(y, y+above)
		}
		y += above + plotHeight + below + rowGap
	}
	p.height = int(y) + edge
	if len(p.panels) > 0 {
		p.height -= rowGap
	}
}

func (p *page) draw(on surface) {
	y := float64(edge)
	for _, line := range p.head {
		on.text(point{edge, y + line.letters.size}, line.text, line.letters)
		y += line.height
	}
	for _, panel := range p.panels {
		panel.draw(on)
	}
}
