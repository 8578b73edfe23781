package figure

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"moontide/trace/tracetest"
)

func mustPNG(t testing.TB, s Sheet) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WritePNG(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGoldenSVG(t *testing.T) {
	f := Figure{
		Title: `Hits & "misses"`, Note: "a small figure",
		X: Axis{Label: "Cache size", Quantity: Bytes, Log: true}, Y: Axis{Label: "Hit rate", Quantity: Percent},
		Series: []Series{
			{Name: "LRU", X: []float64{1 << 20, 1 << 24, 1 << 30}, Y: []float64{0.1, 0.3, 0.35}, Labels: []string{"", "here"}},
			{Name: "bound", Kind: Steps, Dashed: true, X: []float64{1 << 20, 1 << 30}, Y: []float64{0.2, 0.36}},
			{Name: "used", Kind: Bars, X: []float64{1 << 20, 1 << 22, 1 << 24}, Y: []float64{0.1, 0.05}},
		},
		Marks: []Mark{{Label: "16 MiB", At: 1 << 24}, {Label: "most", At: 0.36, OnY: true, Dashed: true}},
	}
	tracetest.Golden(t, "testdata/small.svg", SVG(f))
}

func TestSameBytesAtAnyTime(t *testing.T) {
	for _, sheet := range []Sheet{awkward(), alone(hitRates())} {
		f := sheet.Figures[0]
		svg, picture := SVG(f), mustPNG(t, sheet)
		var drawing sync.WaitGroup
		for range 2 {
			drawing.Go(func() {
				if SVG(f) != svg || !bytes.Equal(mustPNG(t, sheet), picture) {
					t.Errorf("%s: another picture", f.Title)
				}
			})
		}
		drawing.Wait()
	}
}

func TestPNGSizeAndContent(t *testing.T) {
	for name, sheet := range samples() {
		p := newPage(sheet, sheetWidth)
		img, err := png.Decode(bytes.NewReader(mustPNG(t, sheet)))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := img.Bounds().Size(), (image.Point{X: 2 * p.width, Y: 2 * p.height}); got != want {
			t.Errorf("%s: %v pixels, want %v", name, got, want)
		}
		if name == "awkward" {
			continue
		}
		for i, panel := range p.panels {
			if n := inked(img, panel.frame, panel.fig.Series[0].color(0)); n < 300 {
				t.Errorf("%s: plot %d has %d pixels near the colour of its first series", name, i, n)
			}
		}
	}
}

// inked counts pixels that are rather of the colour's hue than grey.
func inked(img image.Image, r rect, c ink) int {
	n := 0
	for y := 2 * int(r.top); y < 2*int(r.bottom); y++ {
		for x := 2 * int(r.left); x < 2*int(r.right); x++ {
			at := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
			if int(at.B)-int(at.R) > (int(c&0xFF)-int(c>>16))/8 {
				n++
			}
		}
	}
	return n
}

func TestSVGIsInlineAndClosed(t *testing.T) {
	for name, f := range figures() {
		svg := SVG(f)
		wellFormed(t, name, svg)
		for _, bad := range []string{"<script", "http", " id=", "href", "url(", "NaN", "Inf", " width=\"7", "<b>"} {
			if strings.Contains(svg, bad) {
				t.Errorf("%s: has %q", name, bad)
			}
		}
	}
}

func wellFormed(t testing.TB, name, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
	}
}

// Every sort of bad value as X and Y of every kind on every axis.
func TestHostileValues(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	values := map[string][]float64{
		"none": nil, "one": {1}, "zero": {0, 0}, "equal": {3, 3, 3, 3}, "NaN": {nan, nan, nan}, "holes": {1, nan, 3, inf, 5, -inf},
		"signs": {-1, 0, 1, 10}, "negative": {-3, -2, -1}, "falling": {9, 5, 2, 1}, "huge": {-math.MaxFloat64, 1e300, math.MaxFloat64},
		"tiny": {math.SmallestNonzeroFloat64, 1e-310, 2e-300}, "close": {1, math.Nextafter(1, 2)}, "wide": {1e-299, 1, 1e299},
	}
	path := regexp.MustCompile(` d="[^"]*(NaN|Inf|e)[^"]*"`)
	n := 0
	for _, xName := range slices.Sorted(maps.Keys(values)) {
		x := values[xName]
		for _, yName := range slices.Sorted(maps.Keys(values)) {
			y := values[yName]
			for kind := Line; kind <= Points; kind++ {
				n++
				xAxis, yAxis := Axis{Quantity: Quantity(n % 4), Log: n%3 == 0}, Axis{Quantity: Quantity(n / 4 % 4), Log: n%5 < 2}
				f := Figure{X: xAxis, Y: yAxis, Series: []Series{{Kind: kind, X: x, Y: y}}, Marks: []Mark{
					{Label: "x", At: 2}, {At: nan}, {Label: "y", At: inf, OnY: true}, {Label: "z", At: 1, OnY: true}}}
				name := fmt.Sprintf("x %s %+v, y %s %+v, kind %d", xName, xAxis, yName, yAxis, kind)
				svg := SVG(f)
				wellFormed(t, name, svg)
				if bad := path.FindString(svg); bad != "" {
					t.Errorf("%s: %s", name, bad)
				}
				if n%50 == 0 {
					mustPNG(t, alone(f))
				}
			}
		}
	}
}

func TestHostileSheets(t *testing.T) {
	long := strings.Repeat("long </script> \x00\x1b\u202e \U0001F600 ", 100_000)
	f := Figure{Title: long, Note: long, X: Axis{Label: long, Unit: long, Quantity: 99}, Y: Axis{Label: "\xff"}}
	for range 60 {
		f.Series = append(f.Series, Series{Name: long, Kind: 77, X: []float64{1, 2}, Y: []float64{1, 2, 3}, Labels: []string{long, long, long, long}})
		f.Marks = append(f.Marks, Mark{Label: long, At: 1.5}, Mark{Label: long, At: 1.5, OnY: true})
	}
	wellFormed(t, "long", SVG(f))
	if svg := SVG(f); strings.Contains(svg, "</script") || len(svg) > 200_000 {
		t.Errorf("%d bytes", len(svg))
	}
	for _, sheet := range []Sheet{
		{}, {Title: long, Note: long, Figures: []Figure{f}}, {Figures: make([]Figure, 12)},
	} {
		mustPNG(t, sheet)
	}
	if err := WritePNG(io.Discard, Sheet{Figures: make([]Figure, 4000)}); err == nil {
		t.Error("drew 4000 figures")
	}
}

func TestWriteErrors(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	if err := WritePNG(w, alone(sweep())); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("png: %v", err)
	}
}

// Tens of thousands of points make a page no larger than a few thousand.
func TestManyPoints(t *testing.T) {
	x, y := many(60_000)
	for kind := Line; kind <= Points; kind++ {
		svg := SVG(Figure{Y: Axis{Log: true}, Series: []Series{{Kind: kind, X: x, Y: y}}})
		if kind != Bars && len(svg) > 20_000 {
			t.Errorf("kind %d: %d bytes", kind, len(svg))
		}
	}
}

func many(n int) (x, y []float64) {
	r := random()
	for i := range n {
		x = append(x, float64(i))
		y = append(y, math.Exp(r.NormFloat64()))
	}
	return x, y
}

func BenchmarkDraw100k(b *testing.B) {
	x, y := many(100_000)
	for name, kind := range map[string]Kind{"line": Line, "steps": Steps, "points": Points} {
		f := Figure{Title: "100k points", Y: Axis{Log: true}, Series: []Series{{Kind: kind, X: x, Y: y}}}
		b.Run("svg/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				SVG(f)
			}
		})
		b.Run("png/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				WritePNG(io.Discard, alone(f))
			}
		})
	}
}
