// Package figure draws curves, histograms, distributions and scatter plots, as PNG
// files and as SVG inside HTML pages.
//
// A [Figure] is two axes with the [Series] and [Mark] lines drawn against them; a
// [Sheet] is rows of figures:
//
//	hits := figure.Figure{
//		Title: "Hit rate against cache size",
//		X:     figure.Axis{Label: "Cache size", Quantity: figure.Bytes, Log: true},
//		Y:     figure.Axis{Label: "Tokens found", Quantity: figure.Percent},
//		Series: []figure.Series{
//			{Name: "LRU", Kind: figure.Steps, X: sizes, Y: lru},
//			{Name: "Belady's bound", Kind: figure.Line, X: sizes, Y: bound, Dashed: true},
//		},
//		Marks: []figure.Mark{{Label: "one GPU", At: 80 << 30}},
//	}
//	err := figure.WritePNG(file, figure.Sheet{Figures: []figure.Figure{hits}})
//	page := figure.SVG(hits)
//
// Legends and labels never cover the data. gonum/plot/vg rasters PNG; the plotters
// of gonum/plot are not used: they put legends onto the data, their SVG has a fixed
// size and depends on installed fonts, and they make the binary much larger. PNG
// text is set in Liberation Sans, which is compiled in; SVG asks for Helvetica or
// Arial, which have the same widths.
//
// The number of drawn points is bounded, and every peak is kept. NaN and infinities
// are gaps, as are values that a log axis cannot show. Series without points give an
// empty frame that says "no data". Texts are cut to the available space and escaped; no
// value or text makes the package panic or emit a script.
//
// The same figure gives the same bytes. All functions are safe for
// concurrent use.
package figure

import (
	"slices"
)

// A Sheet is a picture of figures, two side by side.
type Sheet struct {
	Title string
	// Note is a line in small print under the title.
	Note    string
	Figures []Figure
}

// Drawn returns the series that have points.
func Drawn(all ...Series) []Series {
	return slices.DeleteFunc(all, func(s Series) bool { return len(s.X) == 0 })
}

// A Figure is one plot; the zero Figure is an empty frame.
type Figure struct {
	Title string
	// Note is a line in small print under the title.
	Note   string
	X, Y   Axis
	Series []Series
	Marks  []Mark
}

// Quantity is the kind of value on an axis; it determines the ticks.
type Quantity int

const (
	// Number is a plain number: 0.5, 20, 1k, 1.5M.
	Number Quantity = iota
	// Bytes are counted in powers of 1024: 512 B, 4 MiB, 80 GiB.
	Bytes
	// Percent is a share: the value 0.5 is shown as 50 %.
	Percent
	// Duration is a time in seconds: 20 ms, 1.5 s, 10 min, 2 h.
	Duration
)

// Axis describes one axis of a figure.
type Axis struct {
	Label string
	// Unit is appended to the label in parentheses. Only numbers need one: other
	// quantities have units in their tick labels.
	Unit     string
	Quantity Quantity
	Log      bool
	// Min and Max fix the ends of the axis if they are valid; nil derives them from
	// series and marks. Data outside is clipped. Without Min, a linear y axis of
	// positive values starts at 0.
	Min, Max *float64
}

// Kind is how a series is drawn.
type Kind int

const (
	// Line joins the points in their order, with dots if they are few.
	Line Kind = iota
	// Steps holds each value until the next x.
	Steps
	// Bars is a histogram: X are the edges of the bars, one more than Y.
	Bars
	// Points are dots, not joined.
	Points
)

// A Series is a sequence of points. Surplus values of X or Y are ignored.
type Series struct {
	// Name is shown in tooltips and the legend, which has it once.
	Name   string
	Kind   Kind
	X, Y   []float64
	Dashed bool
	// Color is that of the first, second and so on series of a figure; 0 takes that of
	// the own position.
	Color int
	// Labels names points of a Line, those without space only in the tooltip, and of
	// Points, in tooltips.
	Labels []string
}

// Add appends a point, with a label that may be "".
func (s *Series) Add(x, y float64, label string) {
	s.X, s.Y, s.Labels = append(s.X, x), append(s.Y, y), append(s.Labels, label)
}

// A Mark is a labelled line across the plot: vertical on x or, with OnY, horizontal.
type Mark struct {
	Label  string
	At     float64
	OnY    bool
	Dashed bool
	Limit  bool // of an objective, in the colour of warnings
}

// Sizes of a plot in units, without titles and labels; the smallest letters are 11 units
// high.
const (
	sheetWidth = 880
	plotHeight = 190
)

// points returns the number of points or, for Bars, of bars.
func (s *Series) points() int {
	if s.Kind == Bars {
		return max(0, min(len(s.X)-1, len(s.Y)))
	}
	return min(len(s.X), len(s.Y))
}

func (s *Series) label(i int) string {
	if i < len(s.Labels) {
		return s.Labels[i]
	}
	return ""
}
