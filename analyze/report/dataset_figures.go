package report

import (
	"math"
	"strings"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/trace/stats"
)

// figures draws what the trace has values of.
func (d Dataset) figures() []figure.Figure {
	a := d.Analysis
	figures := []figure.Figure{
		histogram("Input sequence length", "ISL", "tokens", a.ISL, 1),
		histogram("Output sequence length", "OSL", "tokens", a.OSL, 1),
	}
	if a.Lengths.Ratios.Count > 0 {
		figures = append(figures, histogram("Input tokens for each output token", "ISL / OSL", "", a.Lengths.Ratios, 1))
	}
	if a.Time != nil {
		figures = append(figures, timeFigures(a)...)
	}
	p := a.Prefix
	if p == nil || p.HitBlocks == 0 {
		return figures
	}
	if c := d.Cache; c != nil && c.Curve != nil {
		f := c.figure()
		f.Note = estimatedOrder(a)
		figures = append(figures, f)
	}
	if p.Reuse.Time.Count > 0 {
		f := histogram("Reuse intervals", "Time since a block's last use", "", p.Reuse.Time, 1000)
		f.X.Quantity = figure.Duration
		f.Y.Label = "Block hits"
		nameMarks(&f)
		figures = append(figures, f)
	}
	return figures
}

// estimatedOrder returns a remark for figures, or "" if every row has a timestamp.
func estimatedOrder(a *analyze.Analysis) string {
	if a.Untimed.Turns == 0 {
		return ""
	}
	return "The order of " + doc.Count(a.Untimed.Turns, "turn") + " is estimated from delays"
}

// binsOf uses few columns for few values, so that columns show more than single
// values.
func binsOf(values stats.Sample) stats.Bins {
	const least, most = 10, 60
	columns := int(2 * math.Sqrt(float64(values.Count)))
	return stats.BinsFor(min(max(columns, least), most), values)
}

func histogram(title, label, unit string, values stats.Sample, divisor float64) figure.Figure {
	f := figure.Figure{
		Title: title, NoLegend: true,
		X: figure.Axis{Label: label, Unit: unit},
		Y: figure.Axis{Label: "Requests"},
	}
	if values.Count == 0 {
		return f
	}
	if values.Min == values.Max {
		oneColumn(&f, values.Min/divisor, values.Count)
		return f
	}
	bins := binsOf(values)
	counts := values.Histogram(bins)
	if bins.Log && bins.Edges[0] == 0 { // a log axis cannot show zero
		f.Note = doc.Int(counts[0]) + " of value 0 are not on the log axis"
		bins.Edges, counts = bins.Edges[1:], counts[1:]
	}
	x, y := make([]float64, len(bins.Edges)), make([]float64, len(counts))
	for i, edge := range bins.Edges {
		x[i] = edge / divisor
	}
	for i, n := range counts {
		y[i] = float64(n)
	}
	f.X.Log = bins.Log
	f.Series = []figure.Series{{Name: title, Kind: figure.Bars, X: x, Y: y}}
	f.Marks = []figure.Mark{
		{Label: "median", At: values.Quantile(0.5) / divisor},
		{Label: "p99", At: values.Quantile(0.99) / divisor, Dashed: true},
	}
	nameMarks(&f)
	return f
}

// oneColumn draws equal values as one column in the middle of an axis from 0.
func oneColumn(f *figure.Figure, value float64, count int) {
	low, high := 0.0, 2*value
	if value == 0 {
		high = 1
	}
	half := (high - low) / 60
	f.X.Min, f.X.Max = &low, &high
	f.Series = []figure.Series{{Name: f.Title, Kind: figure.Bars, X: []float64{max(0, value-half), value + half}, Y: []float64{float64(count)}}}
	f.Marks = []figure.Mark{{Label: "all", At: value}}
	nameMarks(f)
}

func nameMarks(f *figure.Figure) {
	for i := range f.Marks {
		m := &f.Marks[i]
		value := f.X.Text(m.At)
		if f.X.Quantity == figure.Number && m.At >= 100 {
			value = doc.Fixed(m.At, 0)
		}
		name, _, _ := strings.Cut(m.Label, " ")
		m.Label = name + " " + value
	}
}

func (c *Cache) figure() figure.Figure {
	f := figure.Figure{
		Title: "Hit rate against cache size",
		X:     figure.Axis{Label: "Cache size", Unit: "tokens", Log: true},
		Y:     figure.Axis{Label: "Block hit rate", Quantity: figure.Percent},
	}
	scale := float64(c.BlockSize)
	if c.BytesPerToken > 0 {
		f.X.Unit, f.X.Quantity = "", figure.Bytes
		scale *= c.BytesPerToken
	}
	lru := figure.Series{Name: policyName(cache.LRU), Kind: figure.Line}
	least, capacities := c.leastDrawn(), c.Curve.Spaced(curvePoints)
	if len(capacities) == c.Curve.Largest() { // every size is present: a rate holds up to the next
		lru.Kind = figure.Steps
	}
	for _, capacity := range capacities {
		if capacity >= least {
			lru.X = append(lru.X, float64(capacity)*scale)
			lru.Y = append(lru.Y, c.Curve.At(capacity).Rates().Block)
		}
	}
	series := []figure.Series{lru}
	for _, policy := range cache.Policies() {
		if policy == cache.LRU {
			continue
		}
		s := figure.Series{Name: policyName(policy), Kind: figure.Line, Dashed: policy == cache.Belady}
		for _, p := range c.Points {
			if p.Policy == policy {
				s.X = append(s.X, float64(p.Capacity)*scale)
				s.Y = append(s.Y, p.Hits.Rates().Block)
			}
		}
		series = append(series, s)
	}
	f.Series = append(series[:1], figure.Drawn(series[1:]...)...) // the LRU curve may be empty
	f.Marks = []figure.Mark{{Label: "infinite", At: c.Curve.Infinite().Rates().Block, OnY: true, Dashed: true}}
	return f
}

// leastDrawn returns the smallest capacity of the figure: requested, or a thousandth
// of the flat end of the curve.
func (c *Cache) leastDrawn() int {
	least := max(1, c.Curve.Largest()/1000)
	for _, p := range c.Points {
		if p.Capacity > 0 {
			least = min(least, p.Capacity)
		}
	}
	return least
}

func policyName(p cache.Policy) string {
	if p == cache.Belady {
		return "Belady's bound"
	}
	return strings.ToUpper(string(p))
}
