package figure

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
	ruled    bool // with a line above
}

// Distances between the parts of a page.
const (
	edge      = 16 // around everything
	columnGap = 28
	rowGap    = 22
)

func (s *Sheet) columns() int {
	n := 1
	for i := range s.Rows {
		n = max(n, len(s.Rows[i].Figures))
	}
	return n
}

// newPage lays out the sheet: first across, because the texts above a plot depend on
// its width.
func newPage(s Sheet, width int) *page {
	columns := make([][]*panel, s.columns())
	p := &page{sheet: &s, width: width}
	for i := range s.Rows {
		for j := range s.Rows[i].Figures {
			panel := newPanel(&s.Rows[i].Figures[j])
			columns[j] = append(columns[j], panel)
			p.panels = append(p.panels, panel)
		}
	}
	room := max(float64(width-2*edge-columnGap*(len(columns)-1))/float64(len(columns)), 40)
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
	y = p.head(y, p.sheet.Title, sheetTitle, false)
	y = p.head(y, p.sheet.Note, noteText, false)
	if y > edge {
		y += 12
	}
	rest := p.panels
	for i, row := range p.sheet.Rows {
		if i > 0 {
			y += rowGap
		}
		if row.Label != "" {
			y = p.head(y+6, row.Label, rowLabel, true) + 6
		}
		panels := rest[:len(row.Figures)]
		rest = rest[len(panels):]
		var above, plot, below float64
		for _, panel := range panels {
			a, b := panel.heights()
			above, plot, below = max(above, a), max(plot, panel.plotHeight), max(below, b)
		}
		for _, panel := range panels {
			panel.setDown(y, y+above)
		}
		if len(panels) > 0 {
			y += above + plot + below
		}
	}
	p.height = int(y) + edge
}

func (p *page) head(y float64, text string, l letters, ruled bool) float64 {
	if text = l.fit(text, float64(p.width-2*edge)); text == "" {
		return y
	}
	p.headings = append(p.headings, heading{y + l.size, text, l, ruled})
	return y + l.size*1.4
}

func (p *page) draw(on surface) {
	for _, h := range p.headings {
		if h.ruled {
			y := round(h.baseline-h.letters.size-5) + 0.5
			on.path([][]point{{{edge, y}, {float64(p.width - edge), y}}}, pen{stroke: faint, width: 1}, "")
		}
		on.text(point{edge, h.baseline}, h.text, h.letters)
	}
	for _, panel := range p.panels {
		panel.draw(on)
	}
}
