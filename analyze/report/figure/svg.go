package figure

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/text"
)

// SVG returns the sheet as an <svg> element that fills the width of its parent. It
// has no script, style sheet, id or outside reference, and all texts are escaped.
// Groups have the scales of each plot and the names of its series, for scripts.
// Text scales with the picture: Options.Width should be about the width on the page,
// in CSS pixels.
func SVG(s Sheet, o Options) string {
	p := newPage(s, o)
	b := &svg{}
	b.printf(`<svg viewBox="0 0 %d %d" role="img" aria-label="%s" font-family="Helvetica,Arial,'Liberation Sans',sans-serif">`,
		p.width, p.height, html.EscapeString(p.name()))
	b.path([][]point{rect{0, 0, float64(p.width), float64(p.height)}.corners()}, pen{fill: paper, opacity: 1}, "")
	p.draw(b)
	b.printf("</svg>\n")
	return string(b.out)
}

// svg writes one element per line, so that two versions can be compared.
type svg struct{ out []byte }

func (b *svg) printf(format string, args ...any) {
	b.out = fmt.Appendf(b.out, format, args...)
}

// coordinates writes one decimal.
func (b *svg) coordinates(before string, p point, between string) {
	number := func(v float64) {
		v = math.Round(v*10)/10 + 0 // never -0
		b.out = strconv.AppendFloat(b.out, v, 'f', -1, 64)
	}
	b.out = append(b.out, before...)
	number(p.x)
	b.out = append(b.out, between...)
	number(p.y)
}

func (b *svg) path(lines [][]point, p pen, tip string) {
	if len(lines) == 0 {
		return
	}
	b.printf(`<path d="`)
	for _, line := range lines {
		for i, at := range line {
			// Pairs after a move are lines to them.
			b.coordinates("M "[min(i, 1):][:1], at, " ")
		}
		if p.opacity > 0 {
			b.printf("Z")
		}
	}
	if p.opacity == 0 {
		b.printf(`" fill="none"`)
	} else {
		b.printf(`" fill="#%06x"`, p.fill)
	}
	if p.opacity > 0 && p.opacity < 1 {
		b.printf(` fill-opacity="%g"`, p.opacity)
	}
	if p.width > 0 {
		b.printf(` stroke="#%06x" stroke-width="%g" stroke-linejoin="round"`, p.stroke, p.width)
	}
	if p.width > 0 && p.dash != nil {
		b.printf(` stroke-dasharray="%s"`, strings.Trim(fmt.Sprint(p.dash), "[]"))
	}
	b.close("path", tip)
}

func (b *svg) begin(class string, attributes ...string) {
	b.printf(`<g class="%s"`, class)
	for i := 0; i+1 < len(attributes); i += 2 {
		b.printf(` data-%s="%s"`, attributes[i], html.EscapeString(clean(attributes[i+1])))
	}
	b.printf(">\n")
}

func (b *svg) end() { b.printf("</g>\n") }

func (b *svg) close(element, tip string) {
	if tip = clean(tip); tip == "" {
		b.printf("/>\n")
		return
	}
	b.printf("><title>%s</title></%s>\n", html.EscapeString(tip), element)
}

// dots draws strokes of zero length with round ends: a few bytes per dot.
func (b *svg) dots(at []point, radius float64, color ink, opacity float64, tip string) {
	if len(at) == 0 {
		return
	}
	b.printf(`<path d="`)
	for _, p := range at {
		b.coordinates("M", p, " ")
		b.printf("h0")
	}
	b.printf(`" fill="none" stroke="#%06x" stroke-width="%g" stroke-linecap="round"`, color, 2*radius)
	if opacity < 1 {
		b.printf(` stroke-opacity="%g"`, opacity)
	}
	b.close("path", tip)
}

func (b *svg) text(at point, s string, l letters) {
	if s == "" {
		return
	}
	b.coordinates(`<text x="`, at, `" y="`)
	b.printf(`" font-size="%g" fill="#%06x"`, l.size, l.color)
	if l.bold {
		b.printf(` font-weight="bold"`)
	}
	switch l.anchor {
	case text.XCenter:
		b.printf(` text-anchor="middle"`)
	case text.XRight:
		b.printf(` text-anchor="end"`)
	}
	b.printf(">%s</text>\n", html.EscapeString(s))
}
