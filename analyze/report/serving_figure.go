package report

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/trace/stats"
)

// PNG draws the metric-distribution figure: a row for each run, and in it how
// many requests had which TTFT, inter-token latency and end-to-end latency. The
// errors are those of w.
func (runs ServingRuns) PNG(w io.Writer) error {
	return figure.WritePNG(w, runs.sheet(), figure.Options{})
}

// drawnMetrics are the columns of the figure.
var drawnMetrics = []struct {
	metric       run.Latency
	title, count string
}{
	{run.TTFT, "TTFT", "Requests"},
	{run.ITL, "Inter-token latency", "Tokens"},
	{run.E2EL, "E2E latency", "Requests"},
}

func (runs ServingRuns) sheet() figure.Sheet {
	sheet := figure.Sheet{Title: "Metric distributions", SharedX: true}
	for _, run := range runs {
		label := run.Result.Verdict.Level.String()
		if run.Name != "" {
			label = oneLine(run.Name) + ": " + label
		}
		row := figure.Row{Label: label}
		for _, of := range drawnMetrics {
			row.Figures = append(row.Figures, density(of.title, of.count, run.Result.Latency(of.metric), runs.rangeOf(of.metric)))
		}
		sheet.Rows = append(sheet.Rows, row)
	}
	return sheet
}

// valueRange is where the columns of a smoothed curve lie.
type valueRange struct {
	low, high float64
	log       bool
}

// rangeOf is common to all runs, so that their curves can be compared. It is
// logarithmic where the largest value is more than 20 times the smallest. It
// leaves out what is next to nothing, as are gaps between chunks that came at
// once: on a logarithmic axis that would be most of the picture.
func (runs ServingRuns) rangeOf(m run.Latency) valueRange {
	const linear = 20
	r := valueRange{low: math.Inf(1)}
	least := math.Inf(1)
	for _, run := range runs {
		if d := run.Result.Latency(m); d.Count > 0 {
			r.low, r.high = min(r.low, d.Min), max(r.high, d.Max)
			least = min(least, nearlyNothing(d))
		}
	}
	if r.high > linear*least {
		r.low = max(r.low, least)
	}
	r.log = r.low > 0 && r.high > linear*r.low
	return r
}

// nearlyNothing is a hundredth of the median or, where that is 0, of what is above
// most.
func nearlyNothing(d stats.Sample) float64 {
	for _, p := range []float64{0.5, 0.75, 0.9, 0.99} {
		if x := d.Quantile(p); x > 0 {
			return x / 100
		}
	}
	return d.Max / 100
}

// density draws how many values there are where, smoothed, with the mean and the
// median and, dashed, quartiles and p99. Values are milliseconds.
func density(title, count string, d stats.Sample, over valueRange) figure.Figure {
	const second = 1000
	f := figure.Figure{
		Title: title, NoLegend: true,
		X: figure.Axis{Quantity: figure.Duration, Log: over.log},
		Y: figure.Axis{Label: count},
	}
	if d.Count == 0 {
		return f
	}
	if x, y, below := smoothed(d, over); len(x) > 0 {
		if below > 0 {
			f.Note = fmt.Sprintf("%s of them below %s ms, at the left end", percentage(float64(below)/float64(d.Count)), strconv.FormatFloat(over.low, 'g', 2, 64))
		}
		for i := range x {
			x[i] /= second
		}
		f.Series = []figure.Series{{Name: title, Kind: figure.Area, X: x, Y: y}}
	} else { // all are the same
		at := d.Min / second
		half := max(math.Abs(at)/50, 1e-6)
		f.Series = []figure.Series{{Name: title, Kind: figure.Bars, X: []float64{at - half, at + half}, Y: []float64{float64(d.Count)}}}
	}
	at := func(ms float64) float64 { return max(ms, over.low) / second }
	f.Marks = []figure.Mark{
		{Label: "mean", At: at(d.Mean)},
		{Label: "median", At: at(d.Quantile(0.5))},
		{Label: "p25", At: at(d.Quantile(0.25)), Dashed: true},
		{Label: "p75", At: at(d.Quantile(0.75)), Dashed: true},
		{Label: "p99", At: at(d.Quantile(0.99)), Dashed: true},
	}
	return f
}

// A smoothed curve has the counts of this many columns, each spread over its
// neighbours by a normal distribution of this many columns' standard deviation.
const (
	smoothColumns = 160
	smoothWidth   = 2.5
)

// smoothed counts values in columns over a range, and smooths the counts: the sum
// of all is the number of values, for those below the range are counted in its
// first column. It has no points where the range is one single value.
func smoothed(d stats.Sample, over valueRange) (x, y []float64, below int) {
	low, high := over.low, over.high
	if !(low < high) {
		return nil, nil, 0
	}
	scale, back := func(v float64) float64 { return v }, func(v float64) float64 { return v }
	if over.log {
		scale, back = math.Log, math.Exp
	}
	from, width := scale(low), (scale(high)-scale(low))/smoothColumns
	edges := make([]float64, smoothColumns+1)
	for i := range edges {
		edges[i] = back(from + width*float64(i))
	}
	edges[0], edges[smoothColumns] = low, high
	counts := d.Histogram(stats.Bins{Edges: edges})
	below = d.Count
	for _, n := range counts {
		below -= int(n)
	}
	counts[0] += below
	reach := int(math.Ceil(4 * smoothWidth))
	x, y = make([]float64, smoothColumns), make([]float64, smoothColumns)
	for i := range x {
		x[i] = back(from + width*(float64(i)+0.5))
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
			y[mirrored(i+k-reach)] += float64(n) * weight / sum
		}
	}
	return x, y, below
}

// mirrored is a column, of one that lies behind an end that as far before it, so
// that nothing is lost at the ends.
func mirrored(i int) int {
	switch {
	case i < 0:
		return -1 - i
	case i >= smoothColumns:
		return 2*smoothColumns - 1 - i
	}
	return i
}
