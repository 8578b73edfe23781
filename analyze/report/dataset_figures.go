package report

import (
	"io"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/analyze/dist"
	"moontide/analyze/report/figure"
)

// PNG writes the figures of the report as one picture. The errors are those of
// w.
func (d Dataset) PNG(w io.Writer) error {
	sheet := figure.Sheet{Title: "Trace: " + oneLine(d.Name)}
	var row figure.Row
	for _, f := range d.document().figures() {
		if row.Figures = append(row.Figures, f); len(row.Figures) == 2 {
			sheet.Rows = append(sheet.Rows, row)
			row = figure.Row{}
		}
	}
	if len(row.Figures) > 0 {
		sheet.Rows = append(sheet.Rows, row)
	}
	return figure.WritePNG(w, sheet, figure.Options{})
}

func datasetFigures(d *document, data Dataset) {
	a := data.Analysis
	d.section("Figures")
	d.figure(histogram("Input sequence length", "ISL", "tokens", a.ISL, 1))
	d.figure(histogram("Output sequence length", "OSL", "tokens", a.OSL, 1))
	if a.Arrivals != nil && len(a.Arrivals.Series.Counts) > 0 {
		d.figure(arrivalsFigure(a.Arrivals))
	}
	if data.Cache != nil && data.Cache.Curve != nil && data.Cache.Curve.Infinite().Blocks > 0 {
		d.figure(data.Cache.figure())
	}
	if p := a.Prefix; p != nil && p.Reuse.Time.Count > 0 {
		f := histogram("Reuse intervals", "Time since a block's last use", "", p.Reuse.Time, 1000)
		f.X.Quantity = figure.Duration
		f.Y.Label = "Block hits"
		d.figure(f)
	}
}

// columns is how many bars a histogram gets.
const columns = 60

// histogram draws a distribution, its values divided by a unit.
func histogram(title, label, unit string, values dist.Distribution, divisor float64) figure.Figure {
	bins := dist.BinsFor(columns, values)
	counts := values.Histogram(bins)
	if bins.Log && bins.Edges[0] == 0 { // zeros have no place on a log axis
		bins.Edges, counts = bins.Edges[1:], counts[1:]
	}
	x, y := make([]float64, len(bins.Edges)), make([]float64, len(counts))
	for i, edge := range bins.Edges {
		x[i] = edge / divisor
	}
	for i, n := range counts {
		y[i] = float64(n)
	}
	f := figure.Figure{
		Title: title, NoLegend: true,
		X:      figure.Axis{Label: label, Unit: unit, Log: bins.Log},
		Y:      figure.Axis{Label: "Requests"},
		Series: []figure.Series{{Name: title, Kind: figure.Bars, X: x, Y: y}},
	}
	if values.Count > 0 {
		f.Marks = []figure.Mark{
			{Label: "median", At: values.Quantile(0.5) / divisor},
			{Label: "p99", At: values.Quantile(0.99) / divisor, Dashed: true},
		}
	}
	return f
}

func arrivalsFigure(at *analyze.Arrivals) figure.Figure {
	s := at.Series
	x, y := make([]float64, len(s.Counts)), make([]float64, len(s.Counts))
	for i, n := range s.Counts {
		x[i] = (s.Start + float64(i)*s.Step) / 1000
		y[i] = float64(n) / (s.Step / 1000)
	}
	return figure.Figure{
		Title: "Arrivals over time", Note: "mean of each " + decimals(s.Step/1000, 0) + " s", NoLegend: true,
		X:      figure.Axis{Label: "Time of the trace", Quantity: figure.Duration},
		Y:      figure.Axis{Label: "Arrival rate", Unit: "requests/s"},
		Series: []figure.Series{{Name: "arrivals", Kind: figure.Steps, X: x, Y: y}},
	}
}

// figure draws the hit rate against the size of the cache.
func (c *Cache) figure() figure.Figure {
	f := figure.Figure{
		Title: "Hit rate against cache size",
		X:     figure.Axis{Label: "Cache size", Unit: "tokens", Log: true},
		Y:     figure.Axis{Label: "Blocks hit", Quantity: figure.Percent},
	}
	scale := float64(c.BlockSize)
	if c.BytesPerToken > 0 {
		f.X.Unit, f.X.Quantity = "", figure.Bytes
		scale *= c.BytesPerToken
	}
	lru := figure.Series{Name: string(cache.LRU), Kind: figure.Line}
	for _, capacity := range c.Curve.Spaced(curvePoints) {
		lru.X = append(lru.X, float64(capacity)*scale)
		lru.Y = append(lru.Y, c.Curve.At(capacity).Rates().Block)
	}
	f.Series = append(f.Series, lru)
	for _, policy := range cache.Policies() {
		if policy == cache.LRU {
			continue
		}
		s := figure.Series{Name: string(policy), Kind: figure.Line, Dashed: policy == cache.Belady}
		for _, p := range c.Points {
			if p.Policy == policy {
				s.X = append(s.X, float64(p.Capacity)*scale)
				s.Y = append(s.Y, p.Hits.Rates().Block)
			}
		}
		if len(s.X) > 0 {
			f.Series = append(f.Series, s)
		}
	}
	f.Marks = []figure.Mark{{Label: "infinite", At: c.Curve.Infinite().Rates().Block, OnY: true, Dashed: true}}
	return f
}
