package report

import (
	"math"
	"slices"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/trace/stats"
)

// onAxis converts a value of a sample, whose times are in milliseconds, to one of an axis.
func onAxis(a figure.Axis, value float64) float64 {
	if a.Quantity == figure.Duration {
		return value / 1000
	}
	return value
}

// extent is the range of an axis, in the unit of its samples.
type extent struct {
	low, high float64
	log       bool
}

// extentOf returns the common extent of samples. It is logarithmic if the largest value is
// more than 20 times the smallest or 4 times p99. It then begins above negligible values, such
// as gaps between chunks that arrived together, which would take up most of it.
func extentOf(samples ...stats.Sample) extent {
	const linear, tail = 20, 4
	e := extent{low: math.Inf(1)}
	least, p99 := math.Inf(1), 0.0
	for _, d := range samples {
		if d.Count > 0 {
			e.low, e.high = min(e.low, d.Min), max(e.high, d.Max)
			least, p99 = min(least, negligible(d)), max(p99, d.Quantile(0.99))
		}
	}
	if e.high > linear*max(e.low, least) || e.high > tail*p99 {
		e.low = max(e.low, least)
		e.log = e.low > 0
	}
	return e
}

// negligible returns a hundredth of the lowest percentile above 0.
func negligible(d stats.Sample) float64 {
	for _, p := range []float64{0.5, 0.75, 0.9, 0.99} {
		if x := d.Quantile(p); x > 0 {
			return x / 100
		}
	}
	return d.Max / 100
}

// histogram draws the distribution of a sample with its mean and quantiles.
func histogram(title string, x figure.Axis, of string, d stats.Sample) figure.Figure {
	over := extentOf(d)
	x.Log = over.log
	f := figure.Figure{Title: title, X: x, Y: figure.Axis{Label: of}}
	if d.Count == 0 {
		return f
	}
	edges := over.edges(d.Count, x.Unit == "tokens")
	bars := figure.Series{Name: title, Kind: figure.Bars}
	for _, edge := range edges {
		bars.X = append(bars.X, onAxis(x, edge))
	}
	edges[0] = min(edges[0], d.Min) // the first column holds negligible values, too
	for _, n := range d.Histogram(stats.Bins{Edges: edges}) {
		bars.Y = append(bars.Y, float64(n))
	}
	f.Series = []figure.Series{bars}
	mark := func(name string, value float64, dashed bool) {
		at := min(max(value, over.low), over.high)
		f.Marks = append(f.Marks, figure.Mark{Label: name + " " + x.Text(onAxis(x, value)), At: onAxis(x, at), Dashed: dashed})
	}
	mark("median", d.Quantile(0.5), false)
	mark("p99", d.Quantile(0.99), true)
	mark("mean", d.Mean, false)
	mark("p25", d.Quantile(0.25), true)
	mark("p75", d.Quantile(0.75), true)
	return f
}

// edges returns the edges of the columns: few for few values, and whole numbers for whole
// values.
func (e extent) edges(values int, whole bool) (edges []float64) {
	if !(e.low < e.high) { // all values are equal
		half := max(math.Abs(e.low)/50, 1e-6)
		return []float64{e.low - half, e.low + half}
	}
	columns := min(max(int(2*math.Sqrt(float64(values))), 8), 60)
	for i := range columns {
		edge := e.low + (e.high-e.low)*float64(i)/float64(columns)
		if e.log {
			edge = e.low * math.Pow(e.high/e.low, float64(i)/float64(columns))
		}
		if whole {
			edge = math.Round(edge)
		}
		edges = append(edges, edge)
	}
	edges[0] = e.low
	return slices.Compact(append(edges, e.high))
}

// overlay draws the cumulative distributions of named samples in one figure.
func overlay(title string, x figure.Axis, of string, names []string, samples []stats.Sample) figure.Figure {
	over := extentOf(samples...)
	x.Log = over.log
	f := figure.Figure{Title: title, X: x, Y: figure.Axis{Label: of, Quantity: figure.Percent}}
	return withLines(f, names, func(i int) figure.Series { return cumulative(samples[i], x, over) })
}

// withLines adds a line for each name. A line without points has no name, but keeps its
// colour for the other figures. A single line has no legend: the note names it.
func withLines(f figure.Figure, names []string, line func(i int) figure.Series) figure.Figure {
	only := ""
	for i, name := range names {
		s := line(i)
		if s.Name = ""; len(s.X) > 0 {
			s.Name = doc.Clean(name)
			only = s.Name
		}
		f.Series = append(f.Series, s)
	}
	if drawn(f) == 1 && len(names) > 1 {
		f.Note = strings.TrimPrefix(f.Note+"; only "+only, "; ")
	}
	return f
}

// drawn counts the lines with points.
func drawn(f figure.Figure) int { return len(figure.Drawn(slices.Clone(f.Series)...)) }

// cumulative draws the share of values up to each value in the extent, as steps if they
// are few.
func cumulative(d stats.Sample, x figure.Axis, over extent) figure.Series {
	const points = 250
	line := figure.Series{Kind: figure.Line}
	if d.Count == 0 {
		return line
	}
	add := func(value, share float64) { line.Add(onAxis(x, value), share, "") }
	if d.Min > over.low {
		add(over.low, 0)
	}
	n := points
	if d.Count <= points {
		n, line.Kind = d.Count-1, figure.Steps
	}
	for i := range n + 1 {
		share := float64(i) / float64(max(n, 1))
		value := d.Quantile(share)
		if line.Kind == figure.Steps {
			share = float64(i+1) / float64(d.Count)
		}
		add(max(value, over.low), share)
	}
	if d.Max < over.high {
		add(over.high, 1)
	}
	return line
}

// against draws points whose axes have one unit, with a line of equal values. It omits
// points that a logarithmic axis cannot show.
func against(title, x, y string, axis figure.Axis, points ...figure.Series) figure.Figure {
	low, high := math.Inf(1), 0.0
	for i, s := range points {
		points[i].X, points[i].Y, points[i].Labels = nil, nil, nil
		for k := range s.X {
			if !axis.Log || s.X[k] > 0 && s.Y[k] > 0 {
				low, high = min(low, s.X[k], s.Y[k]), max(high, s.X[k], s.Y[k])
				points[i].Add(s.X[k], s.Y[k], s.Labels[k])
			}
		}
	}
	if !axis.Log {
		low = min(low, 0)
	}
	ends := []float64{low, high}
	axis.Min, axis.Max = &ends[0], &ends[1]
	f := figure.Figure{Title: title, X: axis, Y: axis}
	f.X.Label, f.Y.Label = x, y
	f.Series = append(points, figure.Series{Name: "equal", Kind: figure.Line, Dashed: true, X: ends, Y: ends})
	return f
}
