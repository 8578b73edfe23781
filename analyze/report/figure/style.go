package figure

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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
func (s *Series) color(index int) ink { return palette[s.colorIndex(index)%len(palette)] }

// dashes differ between the series of one colour.
func (s *Series) dashes(index int) []vg.Length {
	i := s.colorIndex(index)
	return dashes[(i%len(palette)+3*(i/len(palette)))%len(dashes)]
}

func (s *Series) colorIndex(index int) int {
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

type letters struct {
	size   float64
	bold   bool
	color  ink
	anchor text.XAlignment // part of the text at its point
}

// fonts holds the regular and bold Liberation Sans, parsed once.
var fonts = sync.OnceValue(func() *font.Cache {
	var faces font.Collection
	for weight, ttf := range map[xfont.Weight][]byte{xfont.WeightNormal: liberationsansregular.TTF, xfont.WeightBold: liberationsansbold.TTF} {
		face, err := opentype.Parse(ttf)
		if err != nil {
			panic(fmt.Sprintf("figure: reading the built-in font: %v", err))
		}
		faces = append(faces, font.Face{Font: font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight}, Face: face})
	}
	return font.NewCache(faces)
})

func (l letters) face() font.Face {
	f := font.Font{Typeface: "Liberation", Variant: "Sans"}
	if l.bold {
		f.Weight = xfont.WeightBold
	}
	return fonts().Lookup(f, font.Length(l.size))
}

func (l letters) width(s string) float64 {
	face := l.face()
	return float64(face.Width(s))
}

// box returns where a text that begins at a point is.
func (l letters) box(at point, s string) rect {
	return rect{at.x, at.y - 0.72*l.size, at.x + l.width(s), at.y + 0.2*l.size}
}

// fit shortens s to a width, ending with an ellipsis if it was cut.
func (l letters) fit(s string, room float64) string {
	s = clean(s)
	if l.width(s) <= room {
		return s
	}
	runes := []rune(s)
	n := sort.Search(len(runes)-1, func(n int) bool { return l.width(string(runes[:n+1])+"…") > room })
	if n == 0 {
		return ""
	}
	return strings.TrimRight(string(runes[:n]), " ") + "…"
}

// clean makes any text safe for one line: at most 300 characters, without control
// characters and marks that change the text direction.
func clean(s string) string {
	const longest = 300
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n == longest {
			b.WriteRune('…')
			break
		}
		switch {
		case unicode.IsSpace(r):
			r = ' '
		case unicode.Is(unicode.C, r), r == 0xFFFE, r == 0xFFFF:
			continue
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// A point in units of the picture: x to the right, y down.
type point struct{ x, y float64 }

// A rect is a part of the picture.
type rect struct{ left, top, right, bottom float64 }

func (r rect) holds(p point) bool {
	// Half a unit more, for points exactly on the frame.
	return p.x >= r.left-0.5 && p.x <= r.right+0.5 && p.y >= r.top-0.5 && p.y <= r.bottom+0.5
}

func (r rect) overlaps(s rect) bool {
	return r.left < s.right && s.left < r.right && r.top < s.bottom && s.top < r.bottom
}

func (r rect) corners() []point {
	return []point{{r.left, r.top}, {r.right, r.top}, {r.right, r.bottom}, {r.left, r.bottom}}
}

// canvas clips coordinates, because clip paths of SVG need ids, which clash on a
// page.
func (r rect) canvas() *draw.Canvas {
	return &draw.Canvas{Rectangle: vg.Rectangle{Min: point{r.left, r.top}.vg(), Max: point{r.right, r.bottom}.vg()}}
}

// clipLine returns the parts of a polyline that are inside r.
func (r rect) clipLine(line []point) [][]point {
	if !slices.ContainsFunc(line, func(p point) bool { return !r.holds(p) }) {
		return [][]point{line}
	}
	var parts [][]point
	for _, part := range r.canvas().ClipLinesXY(toVG(line)) {
		parts = append(parts, fromVG(part))
	}
	return parts
}

// vg is the same coordinates for vg, whatever the direction of y.
func (p point) vg() vg.Point { return vg.Point{X: vg.Length(p.x), Y: vg.Length(p.y)} }

func toVG(points []point) []vg.Point {
	converted := make([]vg.Point, len(points))
	for i, p := range points {
		converted[i] = p.vg()
	}
	return converted
}

func fromVG(points []vg.Point) []point {
	converted := make([]point, len(points))
	for i, p := range points {
		converted[i] = point{float64(p.X), float64(p.Y)}
	}
	return converted
}
