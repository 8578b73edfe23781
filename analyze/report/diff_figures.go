package report

import (
	"math"
	"slices"

	"moontide/analyze/diff"
	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
)

// overlays draws the latencies of the runs of both sides, in a colour for each side.
func (c Diff) overlays() []figure.Figure {
	var runs Runs
	for i, side := range [][]*diff.Run{c.A, c.B} {
		name := []string{"A: " + c.NameA, "B: " + c.NameB}[i]
		for _, r := range side {
			runs = append(runs, Run{Name: name, Info: r.Run, Result: r.Result})
		}
	}
	figures := runs.overlays()
	for _, f := range figures {
		for i := range f.Series {
			s := &f.Series[i]
			if s.Color = 1; i >= len(c.A) {
				s.Color = 2
			}
		}
	}
	return figures
}

// figures draws the latencies of both sides and the changes, beside a figure as high.
func (c Diff) figures() []figure.Figure {
	all, changes := c.overlays(), c.changesFigure()
	if len(all)%2 == 1 {
		all[len(all)-1].Height = changes.Height
	}
	return append(all, changes)
}

// changesFigure draws the relative change of each metric with its interval.
func (c Diff) changesFigure() figure.Figure {
	f := figure.Figure{
		Title: "Change from A to B", Note: "lines are 95 % intervals",
		X:     figure.Axis{Label: "B / A - 1", Quantity: figure.Percent},
		Marks: []figure.Mark{{Label: "equal", At: 0}},
	}
	// By verdict: red is worse whatever the direction of the metric.
	series := []figure.Series{
		{Name: "better", Kind: figure.Points, Color: 1}, {Name: "not significant", Kind: figure.Points, Color: 4}, {Name: "worse", Kind: figure.Points, Color: 3},
	}
	lines := slices.Clone(series)
	most := 0.01
	for _, x := range slices.Backward(c.Differences) {
		if !x.Relative.Set {
			continue
		}
		row, of := float64(len(f.Y.Names)), 1-x.Better()
		f.Y.Names = append(f.Y.Names, x.Metric.Key)
		most = max(most, math.Abs(x.Relative.Value))
		series[of].X, series[of].Y = append(series[of].X, x.Relative.Value), append(series[of].Y, row)
		if i := x.RelativeInterval; i.Set {
			lines[of].X, lines[of].Y = append(lines[of].X, i.Value.Low, i.Value.High, math.NaN()), append(lines[of].Y, row, row, math.NaN())
		}
	}
	for i, line := range lines {
		line.Kind = figure.Steps
		if len(series[i].X) > 0 {
			f.Series = append(f.Series, series[i], line)
		}
	}
	low, high := -1.3*most, 1.3*most
	if most >= 1 { // nothing falls by more than all of it
		low = -1.1
	}
	f.X.Min, f.X.Max = &low, &high
	f.Height = 18 * max(len(f.Y.Names), 4)
	return f
}

// scatters draws the TTFT and the TPOT of each request on both sides. Points on the line
// are equal on both.
func (c Diff) scatters() (figures []figure.Figure) {
	for _, r := range c.Requests {
		if r.Latency == run.E2EL || len(r.Points) == 0 {
			continue
		}
		points := figure.Series{Name: "requests", Kind: figure.Points}
		for _, p := range r.Points {
			points.X, points.Y = append(points.X, p.A/1000), append(points.Y, p.B/1000)
		}
		figures = append(figures, against(r.Latency.Label()+" of each request", "A: "+doc.Clean(c.NameA), "B: "+doc.Clean(c.NameB), figure.Axis{Quantity: figure.Duration, Log: true}, points))
	}
	return figures
}
