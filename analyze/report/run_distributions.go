package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/trace/stats"
)

type distributionColumn struct {
	latency      run.Latency
	title, count string
}

// runDistributions are the figures of a page.
var runDistributions = []distributionColumn{
	{run.TTFT, "Time to first token", "Requests"},
	{run.TPOT, "Time per output token", "Requests"},
	{run.ITL, "Inter-token latency", "Tokens"},
	{run.E2EL, "End-to-end latency", "Requests"},
}

// valueRange is what an axis shows of a latency, in milliseconds.
type valueRange struct {
	low, high float64
	log       bool
}

// clipped is the quantile where the axis of a distribution ends: the few values beyond
// would crowd the others into a corner. It ends with the largest value if that is not
// far: at most slack times as large.
const (
	clipped = 0.999
	slack   = 1.3
)

// rangeOf returns a range common to all runs, logarithmic if the largest value is
// more than 20 times the smallest or 4 times p99. It omits negligible values, which would take up
// most of a logarithmic axis, such as gaps between chunks that arrived together.
func (runs Runs) rangeOf(l run.Latency) valueRange {
	const linear, tail = 20, 4
	r := valueRange{low: math.Inf(1)}
	least, most, p99 := math.Inf(1), 0.0, 0.0
	for _, other := range runs {
		if d := other.Result.Latency(l); d.Count > 0 {
			r.low, r.high = min(r.low, d.Min), max(r.high, d.Quantile(clipped))
			least, most = min(least, negligible(d)), max(most, d.Max)
			p99 = max(p99, d.Quantile(0.99))
		}
	}
	if most <= slack*r.high {
		r.high = most
	}
	if r.high > linear*least {
		r.low = max(r.low, least)
	}
	r.log = r.low > 0 && (r.high > linear*r.low || r.high > tail*p99)
	return r
}

// above counts the values beyond a limit.
func above(d stats.Sample, high float64) int {
	if !(high < d.Max) {
		return 0
	}
	counts := d.Histogram(stats.Bins{Edges: []float64{min(d.Min, high), high, d.Max}})
	return int(counts[1])
}

// beyondNote says what a figure that ends at high does not show.
func beyondNote(n, of int, high, most float64) string {
	if n == 0 || of == 0 {
		return ""
	}
	return fmt.Sprintf("%.2g %% beyond %s not shown, up to %s", 100*float64(n)/float64(of), doc.Duration(high), doc.Duration(most))
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

// fewValues is below what number a distribution is drawn as a histogram: smoothing
// invents modes there.
const fewValues = 300

// distribution draws the distribution of one of the runs, in the range and with the
// objectives of all.
func (c distributionColumn) distribution(runs Runs, of int) figure.Figure {
	const second = 1000
	d, over := runs[of].Result.Latency(c.latency), runs.rangeOf(c.latency)
	f := figure.Figure{
		Title: c.title, NoLegend: true,
		X: figure.Axis{Quantity: figure.Duration, Log: over.log},
		Y: figure.Axis{Label: c.count},
	}
	if d.Count == 0 {
		return f
	}
	series := figure.Series{Name: c.title, Kind: figure.Area}
	if len(runs) > 1 {
		series.Color = of + 1
	}
	edges, counts, below := counted(d, over)
	switch {
	case len(edges) == 0: // all values are equal
		at := d.Min / second
		half := max(math.Abs(at)/50, 1e-6)
		series.Kind, series.X, series.Y = figure.Bars, []float64{at - half, at + half}, []float64{float64(d.Count)}
	case d.Count < fewValues:
		series.Kind, series.X, series.Y = figure.Bars, edges, counts
	default:
		series.X, series.Y = smoothed(edges, counts, over)
	}
	if len(edges) > 0 {
		for i := range series.X {
			series.X[i] /= second
		}
	}
	var notes []string
	if below > 0 {
		notes = append(notes, fmt.Sprintf("%s %% below %s ms (left end)", doc.Percent(float64(below)/float64(d.Count)), strconv.FormatFloat(over.low, 'g', 2, 64)))
	}
	if note := beyondNote(above(d, over.high), d.Count, over.high, d.Max); note != "" {
		notes = append(notes, note)
	}
	f.Note, f.Series = strings.Join(notes, "; "), []figure.Series{series}
	at := func(ms float64) float64 { return min(max(ms, over.low), over.high) / second }
	mark := func(name string, ms float64, dashed bool) {
		f.Marks = append(f.Marks, figure.Mark{Label: name + " " + doc.Duration(ms), At: at(ms), Dashed: dashed})
	}
	mark("median", d.Quantile(0.5), false)
	mark("p99", d.Quantile(0.99), true)
	f.Marks = append(f.Marks, runs.limits(c.latency, over)...)
	mark("mean", d.Mean, false)
	mark("p25", d.Quantile(0.25), true)
	mark("p75", d.Quantile(0.75), true)
	return f
}

// counted counts values in columns of the range, as many as suit their number. Values
// below count in the first column; those above are left out. It returns no edges if the
// range is a single value.
func counted(d stats.Sample, over valueRange) (edges, counts []float64, below int) {
	low, high := over.low, over.high
	if !(low < high) {
		return nil, nil, 0
	}
	columns := smoothColumns
	if d.Count < fewValues {
		columns = min(max(int(2*math.Sqrt(float64(d.Count))), 8), 30)
	}
	scale, back := func(v float64) float64 { return v }, func(v float64) float64 { return v }
	if over.log {
		scale, back = math.Log, math.Exp
	}
	from, width := scale(low), (scale(high)-scale(low))/float64(columns)
	edges = make([]float64, columns+1)
	for i := range edges {
		edges[i] = back(from + width*float64(i))
	}
	edges[0], edges[columns] = low, high
	inside := 0
	for _, n := range d.Histogram(stats.Bins{Edges: edges}) {
		counts = append(counts, float64(n))
		inside += int(n)
	}
	below = max(0, d.Count-inside-above(d, high))
	counts[0] += float64(below)
	return edges, counts, below
}

// A smoothed curve is a histogram of smoothColumns columns, convolved with a Gaussian
// whose standard deviation is smoothWidth columns.
const (
	smoothColumns = 160
	smoothWidth   = 2.5
)

// smoothed returns the middles of smoothColumns columns and a smooth curve of their
// counts.
func smoothed(edges, counts []float64, over valueRange) (x, y []float64) {
	reach := int(math.Ceil(4 * smoothWidth))
	x, y = make([]float64, smoothColumns), make([]float64, smoothColumns)
	for i := range x {
		x[i] = (edges[i] + edges[i+1]) / 2
		if over.log {
			x[i] = math.Sqrt(edges[i] * edges[i+1])
		}
	}
	kernel := make([]float64, 2*reach+1)
	sum := 0.0
	for k := range kernel {
		z := float64(k-reach) / smoothWidth
		kernel[k] = math.Exp(-z * z / 2)
		sum += kernel[k]
	}
	for i, n := range counts {
		for k, weight := range kernel {
			y[mirrored(i+k-reach)] += n * weight / sum
		}
	}
	return x, y
}

func mirrored(i int) int {
	switch {
	case i < 0:
		return -1 - i
	case i >= smoothColumns:
		return 2*smoothColumns - 1 - i
	}
	return i
}
