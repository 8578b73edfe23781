package report

import (
	"math"

	"moontide/analyze"
	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/trace"
)

// timeFigures shows rate, lengths and sharing over time.
func timeFigures(a *analyze.Analysis) []figure.Figure {
	time := figure.Axis{Label: "Time of the trace", Quantity: figure.Duration}
	note := "mean of each " + time.Text(a.Time.Step/1000)
	if n := a.Arrivals.Estimated; n > 0 {
		note += "; the times of " + doc.Count(n, "request") + " are estimated"
	}
	var figures []figure.Figure
	add := func(title string, y figure.Axis, series ...figure.Series) {
		figures = append(figures, figure.Figure{Title: title, Note: note, X: time, Y: y, Series: series})
	}
	windows := a.Time.Windows
	add("Arrivals over time", figure.Axis{Label: "Arrival rate", Unit: "requests/s"}, steps("arrivals", windows, analyze.Window.Rate))
	add("ISL over time", figure.Axis{Label: "Mean ISL", Unit: "tokens"}, steps("ISL", windows, analyze.Window.MeanISL))
	add("OSL over time", figure.Axis{Label: "Mean OSL", Unit: "tokens"}, steps("OSL", windows, analyze.Window.MeanOSL))
	if a.Prefix != nil {
		add("Sharing over time", figure.Axis{Label: "Share of prompt tokens", Quantity: figure.Percent},
			steps("hits of an infinite cache", windows, analyze.Window.HitRate),
			steps("in any other prompt", windows, analyze.Window.ContextShare))
	}
	return figures
}

// steps draws a value of each window; a window without one is a gap.
func steps(name string, windows []analyze.Window, of func(analyze.Window) trace.Opt[float64]) figure.Series {
	s := figure.Series{Name: name, Kind: figure.Steps}
	for _, w := range windows {
		value := of(w)
		if !value.Set {
			value.Value = math.NaN()
		}
		s.X, s.Y = append(s.X, w.From/1000), append(s.Y, value.Value)
	}
	last := len(windows) - 1
	s.X, s.Y = append(s.X, windows[last].To/1000), append(s.Y, s.Y[last])
	return s
}
