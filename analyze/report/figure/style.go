package figure

import (
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// An ink is an opaque colour, 0xRRGGBB.
type ink uint32

// Greys for everything that is not data.
const (
	paper  ink = 0xFFFFFF
	strong ink = 0x1B2026 // titles
	normal ink = 0x3F4650 // labels of axes and marks
	weak   ink = 0x646C77 // ticks and notes
	rule   ink = 0x9097A1 // axes
	faint  ink = 0xE7E9EC // grid
	alarm  ink = 0xB3211E // limits
)

// palette holds colours of Paul Tol that are distinct under every kind of colour
// blindness, and the first three by lightness alone.
var palette = []ink{0x004488, 0xDDAA33, 0xBB5566, 0x6699CC, 0x222222, 0x997700}

// dashes distinguishes lines in grey print, from the fourth series on.
var dashes = [][]vg.Length{nil, nil, nil, {9, 3}, {2, 3}, {9, 3, 2, 3}}

var dashed = []vg.Length{5, 4}

type pen struct {
	fill    ink
	opacity float64 // of the fill, 0 is none
	stroke  ink
	width   float64 // of the stroke, 0 is none
	dash    []vg.Length
}

// inks lists all colors; the palette of a PNG has shades of them.
var inks = append([]ink{paper, strong, normal, weak, rule, faint, alarm}, palette...)

// color returns the colour of a series, given its index in the figure.
func (s *Series) color(index int) ink { return palette[s.place(index)%len(palette)] }

// dashes differ between the series of one colour.
func (s *Series) dashes(index int) []vg.Length {
	i := s.place(index)
	return dashes[(i%len(palette)+3*(i/len(palette)))%len(dashes)]
}

func (s *Series) place(index int) int {
	if s.Color > 0 {
		return s.Color - 1
	}
	return index
}

// line returns the pen for the line of a series, given its index in the figure.
func (s *Series) line(index int) pen {
	p := pen{stroke: s.color(index), width: 2, dash: s.dashes(index)}
	if s.Dashed {
		p.dash = dashed
	}
	return p
}

// A surface is a drawing target. Coordinates start at the upper left corner of the
// picture; a tip is a tooltip.
type surface interface {
	// begin starts a group of what follows, of a class and with attributes: their names
	// and values in turn. Scripts find the parts of a picture by them.
	begin(class string, attributes ...string)
	end()
	// path draws polylines as one shape. Filled shapes are closed.
	path(lines [][]point, p pen, tip string)
	// dots draws filled circles.
	dots(at []point, radius float64, color ink, opacity float64, tip string)
	// text draws a single line with its baseline at the point.
	text(at point, s string, l letters)
}

// Letters of each part.
var (
	sheetTitle  = letters{size: 18, bold: true, color: strong}
	figureTitle = letters{size: 14, bold: true, color: strong}
	noteText    = letters{size: 11.5, color: weak}
	axisLabel   = letters{size: 12, color: normal}
	legendText  = letters{size: 12, color: normal}
	tickText    = letters{size: 11.5, color: weak}
	markText    = letters{size: 11, color: normal}
	pointText   = letters{size: 11, color: normal}
)

// at returns the letters with another anchor.
func (l letters) at(a text.XAlignment) letters {
	l.anchor = a
	return l
}
