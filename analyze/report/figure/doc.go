// Package figure draws curves, histograms, distributions and scatter plots, one
// alone or many on a sheet. A figure is described once, as data, and looks the
// same as a PNG file and as SVG inside an HTML page.
//
// A [Figure] is two axes and the [Series] drawn against them, with [Mark]
// lines at the values worth naming. A [Sheet] is rows of figures:
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
//	err := figure.WritePNG(file, figure.One(hits), figure.Options{})
//	page := figure.SVG(figure.One(hits), figure.Options{})
//
// The range of an axis comes from the data unless the axis fixes it, its ticks
// from the range and the available space, their labels from the [Quantity]. The
// layout reserves space for legends and labels of marks, so that they never cover
// the data, and draws on a surface with three operations: path, dots, text. One
// surface rasters with gonum/plot/vg, the other writes SVG. The plotters of
// gonum/plot are not used: they put legends onto the data, their SVG has a fixed
// size and depends on installed fonts, and they make the binary much larger.
//
// PNG text is set in Liberation Sans, which is compiled in. SVG asks for Helvetica
// or Arial, which have the same widths.
//
// Series may be of any length: the number of drawn points is bounded by the width
// of the picture, and every extreme is kept. NaN and infinities are gaps. A log
// axis cannot show 0 or less, so the figure says how many points it leaves out.
// Series without points give an empty frame that says "no data". Texts are cut to
// the available space and escaped; no value or text makes the package panic or
// emit a script.
//
// The same figure and options give the same bytes. All functions are safe for
// concurrent use.
package figure
