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

func mustPNG(t testing.TB, s Sheet, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WritePNG(&b, s, o); err != nil {
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
	tracetest.Golden(t, "testdata/small.svg", SVG(One(f), Options{Width: 360, PlotHeight: 120}))
}

func TestSameBytesAtAnyTime(t *testing.T) {
	all := samples()
	for _, name := range []string{"awkward", "hits", "histograms", "timeline"} {
		sheet := all[name]
		svg, picture := SVG(sheet, Options{}), mustPNG(t, sheet, Options{Width: 480, Scale: 1})
		var drawing sync.WaitGroup
		for range 2 {
			drawing.Go(func() {
				if SVG(sheet, Options{}) != svg {
					t.Errorf("%s: another SVG", name)
				}
				var b bytes.Buffer
				if err := WritePNG(&b, sheet, Options{Width: 480, Scale: 1}); err != nil || !bytes.Equal(b.Bytes(), picture) {
					t.Errorf("%s: another PNG (%v)", name, err)
				}
			})
		}
		drawing.Wait()
	}
}

func TestPNGSizeAndContent(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and nothing is shared between goroutines")
	}
	for name, sheet := range samples() {
		o := Options{Width: 900, Scale: 1}
		p := newPage(sheet, o)
		img, err := png.Decode(bytes.NewReader(mustPNG(t, sheet, o)))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := img.Bounds().Size(), (image.Point{X: 900, Y: p.height}); got != want {
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
	twice := newPage(One(sweep()), Options{})
	config, err := png.DecodeConfig(bytes.NewReader(mustPNG(t, One(sweep()), Options{})))
	if err != nil || config.Width != 1440 || config.Height != 2*twice.height {
		t.Errorf("the default is %d x %d pixels (%v), want 1440 x %d", config.Width, config.Height, err, 2*twice.height)
	}
}

// inked counts pixels that are rather of the colour's hue than grey.
func inked(img image.Image, r rect, c ink) int {
	n := 0
	for y := int(r.top); y < int(r.bottom); y++ {
		for x := int(r.left); x < int(r.right); x++ {
			at := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
			if int(at.B)-int(at.R) > (int(c&0xFF)-int(c>>16))/8 {
				n++
			}
		}
	}
	return n
}

func TestSVGIsInlineAndClosed(t *testing.T) {
	for name, sheet := range samples() {
		svg := SVG(sheet, Options{})
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
	if testing.Short() {
		t.Skip("slow, and nothing is shared between goroutines")
	}
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
				sheet := One(Figure{X: xAxis, Y: yAxis, Series: []Series{{Kind: kind, X: x, Y: y}}, Marks: []Mark{
					{Label: "x", At: 2}, {At: nan}, {Label: "y", At: inf, OnY: true}, {Label: "z", At: 1, OnY: true}}})
				name := fmt.Sprintf("x %s %+v, y %s %+v, kind %d", xName, xAxis, yName, yAxis, kind)
				svg := SVG(sheet, Options{})
				wellFormed(t, name, svg)
				if bad := path.FindString(svg); bad != "" {
					t.Errorf("%s: %s", name, bad)
				}
				if n%5 == 0 {
					mustPNG(t, sheet, Options{Width: 200, PlotHeight: 80, Scale: 1})
				}
			}
		}
	}
}

func TestHostileSheets(t *testing.T) {
	long := strings.Repeat("long </script> \x00\x1b\u202e \U0001F600 ", 100_000)
	f := Figure{Title: long, Note: long, X: Axis{Label: long, Unit: long, Quantity: 99}, Y: Axis{Label: "\xff"}, NoLegend: false}
	for range 60 {
		f.Series = append(f.Series, Series{Name: long, Kind: 77, X: []float64{1, 2}, Y: []float64{1, 2, 3}, Labels: []string{long, long, long, long}})
		f.Marks = append(f.Marks, Mark{Label: long, At: 1.5}, Mark{Label: long, At: 1.5, OnY: true})
	}
	for name, sheet := range map[string]Sheet{
		"zero": {}, "empty row": {Rows: []Row{{}, {Label: long}}}, "long": {Title: long, Note: long, Rows: []Row{{Label: long, Figures: []Figure{f}}}, SharedX: true},
		"many columns": {Rows: []Row{{Figures: make([]Figure, 100)}}, SharedX: true},
	} {
		for _, o := range []Options{{}, {Width: -5, PlotHeight: 1, Scale: 1}, {Width: 1, PlotHeight: 1, Scale: -1}} {
			svg := SVG(sheet, o)
			wellFormed(t, name, svg)
			if strings.Contains(svg, "</script") || len(svg) > 2_000_000 {
				t.Errorf("%s: %d bytes", name, len(svg))
			}
			if o.Scale == 1 {
				mustPNG(t, sheet, o)
			}
		}
	}
	if err := WritePNG(io.Discard, Sheet{Rows: repeated(Row{Figures: []Figure{{}}}, 2000)}, Options{}); err == nil {
		t.Error("drew 2000 rows")
	}
}

func repeated(r Row, n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = r
	}
	return rows
}

func TestWriteErrors(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	if err := WritePNG(w, One(sweep()), Options{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("png: %v", err)
	}
}

// Hundreds of thousands of points make a page no larger than a few thousand.
func TestManyPoints(t *testing.T) {
	x, y := many(400_000)
	for kind := Line; kind <= Points; kind++ {
		svg := SVG(One(Figure{Y: Axis{Log: true}, Series: []Series{{Kind: kind, X: x, Y: y}}}), Options{})
		if len(svg) > 100_000 {
			t.Errorf("kind %d: %d bytes", kind, len(svg))
		}
	}
}

func TestSharedX(t *testing.T) {
	data := func(x ...float64) Figure { return Figure{Series: []Series{{X: x, Y: x}}} }
	zoomed := data(0, 50)
	zoomed.X.Max = new(10.0)
	log := data(1, 1000)
	log.X.Log = true
	p := newPage(Sheet{SharedX: true, Rows: []Row{{Figures: []Figure{data(10, 20)}}, {Figures: []Figure{data(12, 40)}}, {Figures: []Figure{zoomed}}, {Figures: []Figure{log}}, {}}}, Options{})
	for i, want := range []span{{0, 40}, {0, 40}, {0, 10}, {1, 1000}} {
		if got := p.panels[i].xr; got != want {
			t.Errorf("row %d: %v, want %v", i, got, want)
		}
	}
	if a, b := p.panels[0].frame, p.panels[3].frame; a.left != b.left || a.right != b.right {
		t.Errorf("plots of a column are not aligned: %v, %v", a, b)
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

func benchmarkFigure(kind Kind) Sheet {
	x, y := many(100_000)
	return One(Figure{Title: "100k points", Y: Axis{Log: true}, Series: []Series{{Kind: kind, X: x, Y: y}}})
}

func BenchmarkDraw100k(b *testing.B) {
	for name, kind := range map[string]Kind{"line": Line, "steps": Steps, "area": Area, "bars": Bars, "points": Points} {
		sheet := benchmarkFigure(kind)
		b.Run("svg/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				SVG(sheet, Options{})
			}
			b.ReportMetric(float64(len(SVG(sheet, Options{}))), "bytes/picture")
		})
		b.Run("png/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				WritePNG(io.Discard, sheet, Options{})
			}
			b.ReportMetric(float64(len(mustPNG(b, sheet, Options{}))), "bytes/picture")
		})
	}
}
