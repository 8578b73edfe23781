package figure

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/text"
)

// width is that of a figure on a page, in CSS pixels: two are side by side, or one on a
// phone.
const width = 460

// SVG returns a figure as an <svg> element that fills the width of its parent. It has no
// script, style sheet, id or outside reference, and all texts are escaped. Groups have the
// scales of the plot and the names of its series, for scripts.
func SVG(f Figure) string {
	p := newPage(Sheet{Figures: []Figure{f}}, width)
	b := &svg{}
	b.printf(`<svg viewBox="0 0 %d %d" role="img" aria-label="%s" font-family="Helvetica,Arial,'Liberation Sans',sans-serif" fill="none" stroke-width="1" stroke-linejoin="round">`,
		p.width, p.height, html.EscapeString(cmp.Or(clean(f.Title), "figure")))
	b.path([][]point{rect{0, 0, float64(p.width), float64(p.height)}.corners()}, pen{fill: paper, opacity: 1}, "")
	p.draw(b)
	b.flush()
	b.printf("</svg>\n")
	return string(b.out)
}

// svg writes one element per line, so that two versions can be compared. Consecutive
// elements of the same style share a group, to keep pictures small.
type svg struct {
	out     []byte
	style   string // of the elements that wait for others of the same style
	waiting []string
}

func (b *svg) printf(format string, args ...any) {
	b.out = fmt.Appendf(b.out, format, args...)
}

// add adds an element such as "<path d=.../>", whose name has four letters.
func (b *svg) add(element, style string) {
	if style != b.style {
		b.flush()
		b.style = style
	}
	b.waiting = append(b.waiting, element)
}

func (b *svg) flush() {
	if len(b.waiting) == 1 {
		b.printf("%s%s%s\n", b.waiting[0][:5], b.style, b.waiting[0][5:])
	} else if len(b.waiting) > 1 {
		b.printf("<g%s>\n%s\n</g>\n", b.style, strings.Join(b.waiting, "\n"))
	}
	b.waiting = b.waiting[:0]
}

func (b *svg) begin(class string, attributes ...string) {
	b.flush()
	b.printf(`<g class="%s"`, class)
	for i := 0; i+1 < len(attributes); i += 2 {
		b.printf(` data-%s="%s"`, attributes[i], html.EscapeString(clean(attributes[i+1])))
	}
	b.printf(">\n")
}

func (b *svg) end() {
	b.flush()
	b.printf("</g>\n")
}

func (b *svg) path(lines [][]point, p pen, tip string) {
	if len(lines) == 0 {
		return
	}
	var d outline
	for _, line := range lines {
		d.line(line)
		if p.opacity > 0 {
			d = append(d, 'Z')
		}
	}
	style := ""
	if p.opacity > 0 {
		style = fmt.Sprintf(` fill="#%06x"`, p.fill)
	}
	if p.opacity > 0 && p.opacity < 1 {
		style += fmt.Sprintf(` fill-opacity="%g"`, p.opacity)
	}
	if p.width > 0 {
		style += fmt.Sprintf(` stroke="#%06x"`, p.stroke)
	}
	if p.width > 0 && p.width != 1 {
		style += fmt.Sprintf(` stroke-width="%g"`, p.width)
	}
	if p.width > 0 && p.dash != nil {
		style += fmt.Sprintf(` stroke-dasharray="%s"`, strings.Trim(fmt.Sprint(p.dash), "[]"))
	}
	b.addPath(d, style, tip)
}

func (b *svg) addPath(d outline, style, tip string) {
	if tip = clean(tip); tip == "" {
		b.add(fmt.Sprintf(`<path d="%s"/>`, d), style)
		return
	}
	b.add(fmt.Sprintf(`<path d="%s"><title>%s</title></path>`, d, html.EscapeString(tip)), style)
}

// dots draws strokes with round ends and no length: a few bytes per dot.
func (b *svg) dots(at []point, radius float64, color ink, opacity float64, tip string) {
	if len(at) == 0 {
		return
	}
	var d outline
	for _, dot := range at {
		if len(at) > fewDots { // nobody sees where exactly
			dot = point{math.Round(dot.x), math.Round(dot.y)}
		}
		d.line([]point{dot, dot})
	}
	style := fmt.Sprintf(` stroke="#%06x" stroke-width="%g" stroke-linecap="round"`, color, 2*radius)
	if opacity < 1 {
		style += fmt.Sprintf(` stroke-opacity="%g"`, opacity)
	}
	b.addPath(d, style, tip)
}

func (b *svg) text(at point, s string, l letters) {
	if s == "" {
		return
	}
	style := fmt.Sprintf(` font-size="%g" fill="#%06x"`, l.size, l.color)
	if l.bold {
		style += ` font-weight="bold"`
	}
	switch l.anchor {
	case text.XCenter:
		style += ` text-anchor="middle"`
	case text.XRight:
		style += ` text-anchor="end"`
	}
	b.add(fmt.Sprintf(`<text x="%s" y="%s">%s</text>`, compact(at.x), compact(at.y), html.EscapeString(s)), style)
}

// An outline is the data of a path. Coordinates are relative to the point before, which is
// shorter, and differences of rounded ones, so that errors do not add up.
type outline []byte

func (o *outline) line(points []point) {
	x, y := tenths(points[0].x), tenths(points[0].y)
	o.pair('M', x, y)
	for i, p := range points[1:] {
		nextX, nextY := tenths(p.x), tenths(p.y)
		o.pair("l "[min(i, 1)], nextX-x, nextY-y)
		x, y = nextX, nextY
	}
}

func (o *outline) pair(before byte, x, y int) {
	*o = append(*o, before)
	*o = strconv.AppendFloat(*o, float64(x)/10, 'f', -1, 64)
	*o = append(*o, ' ')
	*o = strconv.AppendFloat(*o, float64(y)/10, 'f', -1, 64)
}

func tenths(v float64) int { return int(math.Round(10 * v)) }
