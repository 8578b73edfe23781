package figure

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"slices"

	"golang.org/x/image/vector"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
)

// maxPixels bounds the memory of a picture, to 4 bytes a pixel and about as
// much again for drawing it.
const maxPixels = 64 << 20

// WritePNG writes the sheet as a PNG file of Options.Width times Options.Scale
// pixels in width. The height follows from the contents. Errors are those of w
// and a sheet of so many rows that it has more than 64 Mi pixels.
func WritePNG(w io.Writer, s Sheet, o Options) error {
	p := newPage(s, o, o.orDefault(s.columns()).Scale)
	width, height := p.width*p.scale, p.height*p.scale
	if width*height > maxPixels {
		return fmt.Errorf("drawing a png: %d x %d pixels are more than %d Mi", width, height, maxPixels>>20)
	}
	canvas := vgimg.NewWith(
		// A unit is a point of vg, 1/72 inch.
		vgimg.UseWH(vg.Length(p.width), vg.Length(p.height)),
		vgimg.UseDPI(72*p.scale),
		vgimg.UseBackgroundColor(paper.opaque(1)),
	)
	p.draw(&raster{canvas, float64(p.height), float64(p.scale)})
	if err := png.Encode(w, canvas.Image()); err != nil {
		return fmt.Errorf("writing a png: %w", err)
	}
	return nil
}

func (c ink) opaque(opacity float64) color.Color {
	return color.NRGBA{uint8(c >> 16), uint8(c >> 8), uint8(c), uint8(math.Round(255 * opacity))}
}

// raster is the surface of pixels. Its y goes up, ours goes down.
type raster struct {
	canvas *vgimg.Canvas
	height float64
	scale  float64 // pixels a unit
}

func (r *raster) point(p point) vg.Point {
	return vg.Point{X: vg.Length(p.x), Y: vg.Length(r.height - p.y)}
}

// batch is how many points of a line, or dots, vg draws at a time. The time of its
// rasterizer is quadratic in the number of crossings of a row of pixels: seconds
// for a noisy line.
const batch = 48

func (r *raster) path(lines [][]point, p pen, _ string) {
	if p.opacity > 0 {
		for _, line := range lines {
			r.fill(line, p.fill.opaque(p.opacity))
		}
	}
	if p.width == 0 {
		return
	}
	dash := make([]vg.Length, len(p.dash))
	for i, d := range p.dash {
		dash[i] = vg.Length(d)
	}
	r.canvas.SetColor(p.stroke.opaque(1))
	r.canvas.SetLineWidth(vg.Length(p.width))
	for _, line := range lines {
		done := 0.0 // of the line, for the dashes to go on
		for len(line) > 1 {
			part := line[:min(batch, len(line))]
			r.canvas.SetLineDash(dash, vg.Length(done))
			r.canvas.Stroke(r.open(part))
			if len(part) == len(line) {
				break
			}
			// The next part begins with the last segment of this one, which
			// keeps the join between them.
			done += length(part[:len(part)-1])
			line = line[len(part)-2:]
		}
	}
}

// fill draws a polygon. It cannot be drawn in parts, whose edges would show, so it
// uses a rasterizer whose time depends only on the size.
func (r *raster) fill(polygon []point, c color.Color) {
	if len(polygon) < 3 {
		return
	}
	box := rect{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, p := range polygon {
		box = rect{min(box.left, p.x), min(box.top, p.y), max(box.right, p.x), max(box.bottom, p.y)}
	}
	s, target := r.scale, r.canvas.Image()
	pixels := image.Rect(int(math.Floor(box.left*s)), int(math.Floor(box.top*s)), int(math.Ceil(box.right*s)), int(math.Ceil(box.bottom*s)))
	pixels = pixels.Intersect(target.Bounds())
	if pixels.Empty() {
		return
	}
	shape := vector.NewRasterizer(pixels.Dx(), pixels.Dy())
	at := func(p point) (x, y float32) {
		return float32(p.x*s - float64(pixels.Min.X)), float32(p.y*s - float64(pixels.Min.Y))
	}
	shape.MoveTo(at(polygon[0]))
	for _, p := range polygon[1:] {
		shape.LineTo(at(p))
	}
	shape.ClosePath()
	shape.Draw(target, pixels, image.NewUniform(c), image.Point{})
}

func (r *raster) open(line []point) vg.Path {
	var path vg.Path
	for i, at := range line {
		if i == 0 {
			path.Move(r.point(at))
		} else {
			path.Line(r.point(at))
		}
	}
	return path
}

func length(line []point) float64 {
	sum := 0.0
	for i := 1; i < len(line); i++ {
		sum += math.Hypot(line[i].x-line[i-1].x, line[i].y-line[i-1].y)
	}
	return sum
}

func (r *raster) dots(at []point, radius float64, color ink, opacity float64, _ string) {
	r.canvas.SetColor(color.opaque(opacity))
	for dots := range slices.Chunk(at, batch) {
		var path vg.Path
		for _, p := range dots {
			center := r.point(p)
			path.Move(vg.Point{X: center.X + vg.Length(radius), Y: center.Y})
			path.Arc(center, vg.Length(radius), 0, 2*math.Pi)
			path.Close()
		}
		r.canvas.Fill(path)
	}
}

func (r *raster) text(at point, s string, l letters) {
	s = l.known(s)
	at.x += float64(l.anchor) * l.width(s)
	r.canvas.SetColor(l.color.opaque(1))
	r.canvas.FillString(l.face(), r.point(at), s)
}
