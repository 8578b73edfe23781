package figure

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"moontide/trace/atomicfile"
)

// maxPixels limits the memory of a picture to 4 bytes per pixel, twice while
// drawing.
const maxPixels = 64 << 20

// pixels is how many a unit is wide.
const pixels = 2

// WritePNG writes the sheet as a PNG file. It returns errors of w, and an error for a
// sheet of more than 64 Mi pixels.
func WritePNG(w io.Writer, s Sheet) error {
	p := newPage(s, sheetWidth)
	width, height := pixels*p.width, pixels*p.height
	if width*height > maxPixels {
		return fmt.Errorf("drawing a png: %d x %d pixels are more than %d Mi", width, height, maxPixels>>20)
	}
	canvas := vgimg.NewWith(
		// A unit is a point of vg, 1/72 inch.
		vgimg.UseWH(vg.Length(p.width), vg.Length(p.height)),
		vgimg.UseDPI(72*pixels),
		vgimg.UseBackgroundColor(paper.opaque(1)),
	)
	p.draw(&raster{draw.New(canvas), float64(p.height)})
	var picture bytes.Buffer
	if err := png.Encode(&picture, paletted(canvas.Image())); err != nil {
		return fmt.Errorf("writing a png: %w", err)
	}
	if _, err := w.Write(marked(picture.Bytes())); err != nil {
		return fmt.Errorf("writing a png: %w", err)
	}
	return nil
}

// marked inserts a chunk that names the writer of a picture after the header.
func marked(picture []byte) []byte {
	const header = 8 + 25 // bytes of the signature and the first chunk
	const kind = 4        // bytes of the name of a chunk
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(atomicfile.PNGMark)-kind))
	chunk = append(chunk, atomicfile.PNGMark...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE([]byte(atomicfile.PNGMark)))
	return slices.Insert(picture, header, chunk...)
}

// paletted returns a picture in shades of the inks on paper, which makes the file less than
// half as large.
func paletted(picture image.Image) image.Image {
	all, ok := picture.(*image.RGBA)
	if !ok {
		return picture
	}
	const shades = 19 // of 13 inks
	var palette color.Palette
	for _, c := range inks {
		for i := range shades {
			shade := func(shift int) uint8 {
				return uint8((int(c>>shift&0xFF)*(i+1) + int(paper>>shift&0xFF)*(shades-1-i)) / shades)
			}
			palette = append(palette, color.RGBA{shade(16), shade(8), shade(0), 0xFF})
		}
	}
	to, last, at := image.NewPaletted(all.Rect, palette), color.RGBA{}, uint8(0)
	index := map[color.RGBA]uint8{}
	for i := range to.Pix {
		c := color.RGBA{all.Pix[4*i], all.Pix[4*i+1], all.Pix[4*i+2], 0xFF}
		if c != last {
			known := false
			if at, known = index[c]; !known {
				at = uint8(palette.Index(c))
				index[c] = at
			}
			last = c
		}
		to.Pix[i] = at
	}
	return to
}

func (c ink) opaque(opacity float64) color.Color {
	return color.NRGBA{uint8(c >> 16), uint8(c >> 8), uint8(c), uint8(math.Round(255 * opacity))}
}

// raster is the surface of pixels. Its y goes up, ours goes down.
type raster struct {
	canvas draw.Canvas
	height float64
}

func (r *raster) point(p point) vg.Point {
	return point{p.x, r.height - p.y}.vg()
}

func (r *raster) points(line []point) []vg.Point {
	points := make([]vg.Point, len(line))
	for i, at := range line {
		points[i] = r.point(at)
	}
	return points
}

// batch is how many points of a line, or dots, vg draws at a time: the time of its
// rasterizer is quadratic in the crossings of a row of pixels.
const batch = 48

func (*raster) begin(string, ...string) {}
func (*raster) end()                    {}

func (r *raster) path(lines [][]point, p pen, _ string) {
	style := draw.LineStyle{Color: p.stroke.opaque(1), Width: vg.Length(p.width), Dashes: p.dash}
	for _, line := range lines {
		if p.opacity > 0 {
			r.canvas.FillPolygon(p.fill.opaque(p.opacity), r.points(line))
		}
		style.DashOffs = 0
		for p.width > 0 && len(line) > 1 {
			part := line[:min(batch, len(line))]
			r.canvas.StrokeLines(style, r.points(part))
			if len(part) == len(line) {
				break
			}
			// Repeat the last segment to keep the join.
			for i := range len(part) - 2 {
				style.DashOffs += vg.Length(math.Hypot(part[i+1].x-part[i].x, part[i+1].y-part[i].y))
			}
			line = line[len(part)-2:]
		}
	}
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
	at.x += float64(l.anchor) * l.width(s)
	r.canvas.SetColor(l.color.opaque(1))
	r.canvas.FillString(l.face(), r.point(at), s)
}
