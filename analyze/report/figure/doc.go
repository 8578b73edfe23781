// Package figure draws figures: a curve, a histogram, a distribution, a
// scatter of points, one alone or many on a sheet. A figure is described once,
// as plain data, and looks the same as a PNG file and as SVG inside an HTML
// page. The package knows what axes, series and marks are; what the values
// mean is the caller's business.
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
// # From values to a picture
//
// The range of an axis comes from the data unless the axis fixes it, its ticks
// from the range and the room, their labels from the [Quantity]. A layout then
// gives every part a place of its own, so that neither the legend nor the
// label of a mark lies on the data, and draws on a surface that has three
// verbs: path, dots, text. There are two surfaces. One rasters with the
// drawing layer of gonum/plot, the other writes SVG. The plotters of
// gonum/plot are not used: they put legends onto the data, their SVG has a
// fixed size and needs fonts few readers have, and importing them costs four
// times as much binary.
//
// Texts are set in Liberation Sans, which is compiled in. SVG asks for
// Helvetica or Arial, whose letters are exactly as wide.
//
// # Any data
//
// Series may be as long as they like: what is drawn is bounded by the width of
// the picture, and no extreme is lost on the way (see thin.go). NaN and
// infinities are gaps. A log axis cannot show 0 or less, so the figure says how
// many points it leaves out. Series without points give an empty frame that
// says "no data". Texts are shortened to their room and escaped; no value and
// no text makes the package panic or emit a script.
//
// The same figure and options give the same bytes. Nothing here keeps state,
// so goroutines may draw at the same time, also the same figure.
package figure
