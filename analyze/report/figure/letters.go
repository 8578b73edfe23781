package figure

import (
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"gonum.org/v1/plot/font"
)

// letters is how a text is set.
type letters struct {
	size   float64
	bold   bool
	color  ink
	anchor anchor
}

// anchor is which part of a text lies at its point.
type anchor int

const (
	atStart anchor = iota
	atMiddle
	atEnd
)

// typefaces are the regular and the bold typeface, parsed once.
var typefaces = sync.OnceValues(func() (t [2]*opentype.Font, err error) {
	for i, ttf := range [][]byte{liberationsansregular.TTF, liberationsansbold.TTF} {
		if t[i], err = opentype.Parse(ttf); err != nil {
			return t, fmt.Errorf("reading the built-in font: %w", err)
		}
	}
	return t, nil
})

// face is the font of l. Callers have checked that typefaces succeeds.
func (l letters) face() font.Face {
	faces, _ := typefaces()
	f := font.Face{Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: font.Length(l.size)}, Face: faces[0]}
	if l.bold {
		f.Font.Weight, f.Face = xfont.WeightBold, faces[1]
	}
	return f
}

// width of a text as it is drawn.
func (l letters) width(s string) float64 {
	if _, err := typefaces(); err != nil {
		return 0.55 * l.size * float64(utf8.RuneCountInString(s))
	}
	face := l.face()
	return float64(face.Width(s))
}

// known replaces each rune that the font lacks by a box. A browser would take it
// from another font.
func (l letters) known(s string) string {
	var b sfnt.Buffer
	face := l.face()
	return strings.Map(func(r rune) rune {
		if glyph, err := face.Face.GlyphIndex(&b, r); err != nil || glyph == 0 {
			return '□'
		}
		return r
	}, s)
}

// fit shortens s to a width, with an ellipsis if something is missing.
func (l letters) fit(s string, room float64) string {
	s = clean(s)
	if l.width(s) <= room {
		return s
	}
	runes := []rune(s)
	short, long := 0, len(runes) // how many runes fit, and do not
	for long-short > 1 {
		n := (short + long) / 2
		if l.width(string(runes[:n])+"…") <= room {
			short = n
		} else {
			long = n
		}
	}
	if short == 0 {
		return ""
	}
	return strings.TrimRight(string(runes[:short]), " ") + "…"
}

// clean makes any text fit for one line: without control characters, which XML
// forbids, without marks that change the text direction, and at most 300
// characters long.
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
