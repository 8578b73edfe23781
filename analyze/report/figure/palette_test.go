package figure

import (
	"image"
	"image/color"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Up to 256 colours are kept; of more, the frequent ones, and others are near.
func TestPaletted(t *testing.T) {
	picture := image.NewRGBA(image.Rect(0, 0, 64, 64))
	for i := range 64 * 64 {
		picture.SetRGBA(i%64, i/64, color.RGBA{uint8(i % 256), 0, 0, 255})
	}
	same := paletted(picture)
	for i := range 64 * 64 {
		if x, y := i%64, i/64; same.At(x, y) != picture.At(x, y) {
			t.Fatalf("%v is now %v", picture.At(x, y), same.At(x, y))
		}
	}
	rare := color.RGBA{17, 1, 0, 255}
	picture.SetRGBA(5, 5, rare)
	if got := paletted(picture).At(5, 5); got != (color.RGBA{17, 0, 0, 255}) {
		t.Errorf("%v is now %v", rare, got)
	}
	if got := paletted(picture).At(6, 5); got != picture.At(6, 5) {
		t.Errorf("%v is now %v", picture.At(6, 5), got)
	}
}

// Every colour of a picture has one for dark pages, and the series keep distinct ones.
func TestDark(t *testing.T) {
	used := map[ink]bool{}
	for _, c := range append(slices.Clone(palette), paper, strong, normal, weak, rule, faint, alarm) {
		to, ok := dark[c]
		if !ok || used[to] {
			t.Errorf("#%06x has no colour of its own on a dark page", c)
		}
		used[to] = true
	}
	style := DarkStyle()
	for name, sheet := range samples() {
		for _, found := range regexp.MustCompile(`(fill|stroke)="#[0-9a-f]{6}"`).FindAllString(SVG(sheet, Options{}), -1) {
			if !strings.Contains(style, "svg ["+found+"]") {
				t.Fatalf("%s: no rule for %s", name, found)
			}
		}
	}
}
