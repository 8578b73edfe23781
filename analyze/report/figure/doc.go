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
