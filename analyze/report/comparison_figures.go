package report

import (
	"io"
	"slices"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/trace/stats"
)

// PNG writes the figures as one picture. All errors are from w.
func (c Comparison) PNG(w io.Writer) error {
	return figure.WritePNG(w, c.sheet(), figure.Options{})
}

func (c Comparison) sheet() figure.Sheet {
	var names, estimated []string
	for _, data := range c {
		names = append(names, doc.Clean(data.Name))
		if data.Analysis.Untimed.Turns > 0 {
			estimated = append(estimated, doc.Clean(data.Name))
		}
	}
	sheet := figure.Sheet{Title: "Traces: " + strings.Join(names, ", ")}
	if len(estimated) > 0 {
		sheet.Note = "The order of turns without a timestamp is estimated: " + strings.Join(estimated, ", ")
	}
	for row := range slices.Chunk(c.figures(), 2) {
		sheet.Rows = append(sheet.Rows, figure.Row{Figures: row})
	}
	return sheet
}

// figures draws what the distances measure: cumulative distributions, and LRU
// curves.
func (c Comparison) figures() []figure.Figure {
	figures := []figure.Figure{
		c.cumulative("Input sequence length", "ISL", func(d Dataset) stats.Sample { return d.Analysis.ISL }),
		c.cumulative("Output sequence length", "OSL", func(d Dataset) stats.Sample { return d.Analysis.OSL }),
	}
	if slices.ContainsFunc(c, func(d Dataset) bool { return d.Analysis.Prefix != nil }) {
		figures = append(figures, c.cumulative("Observed context", "Shared part of a prompt", func(d Dataset) stats.Sample {
			p, _ := orZero(d.Analysis.Prefix)
			return p.Context
		}))
	}
	if slices.ContainsFunc(c, func(d Dataset) bool { return d.Cache.known() }) {
		figures = append(figures, c.lruFigure())
	}
	return figures
}

// cumulativePoints is the number of points of a distribution.
const cumulativePoints = 200

// cumulative draws the share of requests with at most so many tokens. The axis is
// logarithmic, so a curve starts above 0 if some requests have none.
func (c Comparison) cumulative(title, label string, of func(Dataset) stats.Sample) figure.Figure {
	f := figure.Figure{
		Title: title,
		X:     figure.Axis{Label: label, Unit: "tokens", Log: true},
		Y:     figure.Axis{Label: "Requests of at most this length", Quantity: figure.Percent},
	}
	for _, data := range c {
		line := figure.Series{Name: doc.Clean(data.Name), Kind: figure.Line}
		for i := range cumulativePoints + 1 {
			share := float64(i) / cumulativePoints
			if tokens := of(data).Quantile(share); tokens > 0 {
				line.X, line.Y = append(line.X, tokens), append(line.Y, share)
			}
		}
		if len(line.X) > 0 {
			f.Series = append(f.Series, line)
		}
	}
	return f
}

func (c Comparison) lruFigure() (f figure.Figure) {
	for _, data := range c {
		if data.Cache.known() {
			one := data.Cache.figure()
			line := one.Series[0]
			line.Name = doc.Clean(data.Name)
			f.X, f.Y, f.Series = one.X, one.Y, append(f.Series, line)
		}
	}
	f.Title = "LRU hit rate against cache size"
	return f
}
