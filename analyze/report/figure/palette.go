package figure

import (
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"slices"
)

// paletted returns a picture in its inks and its most frequent other colours, 256 in all, which makes the file
// less than half as large. The others are shades at the edges of letters and lines;
// they become the nearest of these.
func paletted(picture image.Image) *image.Paletted {
	all, ok := picture.(*image.RGBA)
	if !ok {
		all = image.NewRGBA(picture.Bounds())
		draw.Draw(all, all.Rect, picture, all.Rect.Min, draw.Src)
	}
	counts := map[color.RGBA]int{}
	each(all, func(_ int, c color.RGBA, n int) { counts[c] += n })
	colors := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		colors = append(colors, c)
	}
	number := func(c color.RGBA) int { return int(c.R)<<16 | int(c.G)<<8 | int(c.B) }
	slices.SortFunc(colors, func(a, b color.RGBA) int {
		if x, y := isInk(number(a)), isInk(number(b)); x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(number(a), number(b)))
	})
	palette := make(color.Palette, min(256, len(colors)))
	for i := range palette {
		palette[i] = colors[i]
	}
	index := make(map[color.RGBA]uint8, len(colors))
	for _, c := range colors {
		index[c] = uint8(palette.Index(c))
	}
	to := image.NewPaletted(all.Rect, palette)
	each(all, func(at int, c color.RGBA, n int) {
		for i := range to.Pix[at : at+n] {
			to.Pix[at+i] = index[c]
		}
	})
	return to
}

// isInk reports whether a colour is used as such: a few dots of it must not lose it.
func isInk(c int) bool {
	_, ok := dark[ink(c)]
	return ok
}

// each calls f for each run of n pixels of one colour, the first at at.
func each(picture *image.RGBA, f func(at int, c color.RGBA, n int)) {
	pix := picture.Pix
	colorAt := func(i int) color.RGBA { return color.RGBA{pix[4*i], pix[4*i+1], pix[4*i+2], pix[4*i+3]} }
	from, before := 0, color.RGBA{}
	for i := range len(pix) / 4 {
		if c := colorAt(i); i == 0 || c != before {
			if i > from {
				f(from, before, i-from)
			}
			from, before = i, c
		}
	}
	if n := len(pix)/4 - from; n > 0 {
		f(from, before, n)
	}
}
