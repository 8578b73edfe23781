package figure

import "slices"

// A page is a sheet after layout.
type page struct {
	sheet         *Sheet
	width, height int
	panels        []*panel
	headings      []heading
}

type heading struct {
	baseline float64
	text     string
	letters  letters
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
	y = p.head(y, p.sheet.Title, sheetTitle)
	y = p.head(y, p.sheet.Note, noteText)
	if y > edge {
		y += 12
	}
	for row := range slices.Chunk(p.panels, 2) {
		var above, plot, below float64
		for _, panel := range row {
			a, b := panel.heights()
			above, plot, below = max(above, a), max(plot, plotHeight), max(below, b)
		}
		for _, panel := range row {
			panel.setDown(y, y+above)
		}
		y += above + plot + below + rowGap
	}
	p.height = int(y) + edge
	if len(p.panels) > 0 {
		p.height -= rowGap
	}
}

func (p *page) head(y float64, text string, l letters) float64 {
	if text = l.fit(text, float64(p.width-2*edge)); text == "" {
		return y
	}
	p.headings = append(p.headings, heading{y + l.size, text, l})
	return y + l.size*1.4
}

func (p *page) draw(on surface) {
	for _, h := range p.headings {
		on.text(point{edge, h.baseline}, h.text, h.letters)
	}
	for _, panel := range p.panels {
		panel.draw(on)
	}
}
