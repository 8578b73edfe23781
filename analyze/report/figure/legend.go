package figure

import "fmt"

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
