package figure

import (
	"fmt"
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
)

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
