package figure

import "fmt"

// A legend names the series of a figure, in rows above its plot.
type legend struct{ rows [][]entry }

// An entry is a sample of a series and its name.
type entry struct {
	series *Series
	index  int
	x      float64 // from the left
	name   string
}

const (
	sampleWidth    = 22
	sampleGap      = 6
	entryGap       = 18
	mostLegendRows = 4
)

// newLegend fills rows of the given width. What does not fit in a few rows is
// counted.
func newLegend(f *Figure, width float64) legend {
	named := 0
	for i := range f.Series {
		if f.Series[i].Name != "" {
			named++
		}
	}
	if named < 2 || f.NoLegend {
		return legend{}
	}
	var l legend
	var row []entry
	x, shown := 0.0, 0
	for i := range f.Series {
		s := &f.Series[i]
		if s.Name == "" {
			continue
		}
		name := legendText.fit(s.Name, width-sampleWidth-sampleGap)
		room := sampleWidth + sampleGap + legendText.width(name)
		if x > 0 && x+room > width {
			l.rows, row, x = append(l.rows, row), nil, 0
		}
		if len(l.rows) == mostLegendRows {
			l.rows = append(l.rows, []entry{{name: fmt.Sprintf("and %d more", named-shown)}})
			return l
		}
		row = append(row, entry{s, i, x, name})
		x += room + entryGap
		shown++
	}
	l.rows = append(l.rows, row)
	return l
}

func (l legend) draw(on surface, at point) {
	for i, row := range l.rows {
		y := at.y + float64(i)*legendHeight
		for _, e := range row {
			textLeft := at.x + e.x
			if e.series != nil {
				e.drawSample(on, point{at.x + e.x, y + 8})
				textLeft += sampleWidth + sampleGap
			}
			on.text(point{textLeft, y + 12}, e.name, legendText)
		}
	}
}

func (e entry) drawSample(on surface, at point) {
	p := e.series.line(e.index)
	line := [][]point{{at, {at.x + sampleWidth, at.y}}}
	box := [][]point{rect{at.x, at.y - 6, at.x + sampleWidth, at.y + 5}.corners()}
	switch e.series.Kind {
	case Points:
		drawDots(on, []point{{at.x + sampleWidth/2, at.y}}, e.index, "")
	case Bars, Area:
		on.path(box, pen{fill: p.stroke, opacity: areaOpacity}, "")
		on.path([][]point{{box[0][0], box[0][1]}}, p, "")
	default:
		on.path(line, p, "")
	}
}
