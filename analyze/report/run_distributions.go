package report

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/trace/stats"
)

// PNG draws a row per run with the distributions of TTFT, inter-token latency and
// end-to-end latency. The picture of a single run also has them by turn if its
// sessions have several.
func (runs Runs) PNG(w io.Writer) error {
	return figure.WritePNG(w, runs.sheet(), figure.Options{})
}

type distributionColumn struct {
	latency      run.Latency
	title, count string
}

var distributionColumns = []distributionColumn{
	{run.TTFT, "TTFT", "Requests"},
	{run.ITL, "Inter-token latency", "Tokens"},
	{run.E2EL, "E2E latency", "Requests"},
}

func (runs Runs) sheet() figure.Sheet {
	sheet := figure.Sheet{Title: "Metric distributions", SharedX: true}
	for _, r := range runs {
		label := r.Result.Verdict.Level.String()
		if r.Name != "" {
			label = doc.Clean(r.Name) + ": " + label
		}
		for _, n := range simulatedNotes(r.Info.Target) {
			label += " – " + n.String()
		}
		row := figure.Row{Label: label}
		for _, c := range distributionColumns {
			row.Figures = append(row.Figures, density(c.title, c.count, r.Result.Latency(c.latency), runs.rangeOf(c.latency)))
		}
		sheet.Rows = append(sheet.Rows, row)
		if figures := turnFigures(r.Result.Sessions); len(figures) > 0 && len(runs) == 1 {
			sheet.Rows = append(sheet.Rows, figure.Row{Figures: figures})
		}
	}
	return sheet
}

type valueRange struct {
	low, high float64
	log       bool
}

// rangeOf returns a range common to all runs, logarithmic if the largest value is
// more than 20 times the smallest. It omits negligible values, which would take up
// most of a logarithmic axis, such as gaps between chunks that arrived together.
func (runs Runs) rangeOf(l run.Latency) valueRange {
	const linear = 20
	r := valueRange{low: math.Inf(1)}
	least := math.Inf(1)
	for _, other := range runs {
		if d := other.Result.Latency(l); d.Count > 0 {
			r.low, r.high = min(r.low, d.Min), max(r.high, d.Max)
			least = min(least, negligible(d))
		}
	}
	if r.high > linear*least {
		r.low = max(r.low, least)
	}
	r.log = r.low > 0 && r.high > linear*r.low
	return r
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

// density draws a smoothed histogram. Values are milliseconds.
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
			f.Note = fmt.Sprintf("%s %% of them below %s ms, at the left end", doc.Percent(float64(below)/float64(d.Count)), strconv.FormatFloat(over.low, 'g', 2, 64))
		}
		for i := range x {
			x[i] /= second
		}
		f.Series = []figure.Series{{Name: title, Kind: figure.Area, X: x, Y: y}}
	} else { // all values are equal
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

// A smoothed curve is a histogram of smoothColumns columns, convolved with a Gaussian
// whose standard deviation is smoothWidth columns.
const (
	smoothColumns = 160
	smoothWidth   = 2.5
)

// smoothed counts values below the range in its first column. It returns no points
// if the range is a single value.
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

func mirrored(i int) int {
	switch {
	case i < 0:
		return -1 - i
	case i >= smoothColumns:
		return 2*smoothColumns - 1 - i
	}
	return i
}
