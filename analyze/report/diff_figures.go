package report

import (
	"moontide/analyze/diff"
	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
)

// figures draws the latencies of the runs of both sides, in a colour for each side.
func (c Diff) figures() []figure.Figure {
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
