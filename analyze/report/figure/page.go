package figure

// A page is a sheet with a place for everything.
type page struct {
	sheet         *Sheet
	width, height int
	scale         int // pixels a unit
	panels        []*panel
	headings      []heading
}

// A heading is a text across the page.
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

// newPage lays the sheet out: across first, as the texts above a plot depend
// on its width, then down.
func newPage(s Sheet, o Options, scale int) *page {
	columns := s.columns()
	o = o.orDefault(columns)
	p := &page{sheet: &s, width: o.Width, scale: scale}
	grid := p.grid(o)
	room := max(float64(o.Width-2*edge-columnGap*(columns-1))/float64(columns), 40)
	for column := range columns {
		left := edge + float64(column)*(room+columnGap)
		p.across(grid, column, left, left+room)
	}
	p.down(grid, float64(o.PlotHeight))
	return p
}

// grid makes the panels, by row and column; where a row is short, nil.
func (p *page) grid(o Options) [][]*panel {
	grid := make([][]*panel, len(p.sheet.Rows))
	for i := range p.sheet.Rows {
		figures := p.sheet.Rows[i].Figures
		grid[i] = make([]*panel, p.sheet.columns())
		for j := range figures {
			grid[i][j] = newPanel(&figures[j], float64(o.PlotHeight))
			p.panels = append(p.panels, grid[i][j])
		}
	}
	if p.sheet.SharedX {
		for column := range p.sheet.columns() {
			shareX(grid, column)
		}
	}
	for _, panel := range p.panels {
		panel.setLimits()
	}
	return grid
}

// shareX gives the panels of a column the range of all their data.
func shareX(grid [][]*panel, column int) {
	all := emptySpan()
	var sharing []*panel
	for _, row := range grid {
		panel := row[column]
		if panel == nil || panel.data.x.empty() || panel.fig.X.Min != nil || panel.fig.X.Max != nil {
			continue
		}
		if x := sharing; len(x) > 0 && (x[0].fig.X.Log != panel.fig.X.Log || x[0].fig.X.Quantity != panel.fig.X.Quantity) {
			continue
		}
		all.include(panel.data.x.lo)
		all.include(panel.data.x.hi)
		sharing = append(sharing, panel)
	}
	for _, panel := range sharing {
		panel.data.x = all
	}
}

// across places the panels of a column between two edges, with equal margins.
func (p *page) across(grid [][]*panel, column int, left, right float64) {
	var before, after float64
	for _, row := range grid {
		if panel := row[column]; panel != nil {
			b, a := panel.sideMargins(right - left)
			before, after = max(before, b), max(after, a)
		}
	}
	for _, row := range grid {
		if panel := row[column]; panel != nil {
			panel.setAcross(left, right, before, after)
		}
	}
}

// down places headings and rows below each other. The plots of a row are on
// one line.
func (p *page) down(grid [][]*panel, plotHeight float64) {
	y := float64(edge)
	y = p.head(y, p.sheet.Title, sheetTitle, false)
	y = p.head(y, p.sheet.Note, noteText, false)
	if y > edge {
		y += 12
	}
	for i, row := range grid {
		if i > 0 {
			y += rowGap
		}
		if label := p.sheet.Rows[i].Label; label != "" {
			y = p.head(y+6, label, rowLabel, true) + 6
		}
		var above, below float64
		for _, panel := range row {
			if panel != nil {
				a, b := panel.heights()
				above, below = max(above, a), max(below, b)
			}
		}
		for _, panel := range row {
			if panel != nil {
				panel.setDown(y, y+above, y+above+plotHeight)
			}
		}
		if len(p.sheet.Rows[i].Figures) > 0 {
			y += above + plotHeight + below
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

// name is the text for screen readers.
func (p *page) name() string {
	if p.sheet.Title != "" {
		return clean(p.sheet.Title)
	}
	for _, panel := range p.panels {
		if panel.fig.Title != "" {
			return clean(panel.fig.Title)
		}
	}
	return "figure"
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
		panel.draw(on, float64(p.scale))
	}
}
