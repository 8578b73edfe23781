package report

import (
	"math"

	"moontide/analyze"
	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/trace"
)

// timeFigures shows rate, lengths and sharing over time, with the means of regimes
// and the trends, if there are any.
func timeFigures(a *analyze.Analysis) []figure.Figure {
	rate := arrivalsFigure(a.Arrivals)
	t, estimated := a.Time, estimatedTimes(a)
	rate.Note += estimated
	if t == nil {
		return []figure.Figure{rate}
	}
	addChanges(&rate, t, t.Rate, analyze.Window.Rate)
	isl := overTime(t, "ISL over time", figure.Axis{Label: "Mean ISL", Unit: "tokens"})
	addValues(&isl, t, "ISL", meanISL)
	addChanges(&isl, t, t.ISL, meanISL)
	osl := overTime(t, "OSL over time", figure.Axis{Label: "Mean OSL", Unit: "tokens"})
	addValues(&osl, t, "OSL", meanOSL)
	addChanges(&osl, t, t.OSL, meanOSL)
	figures := []figure.Figure{rate, isl, osl}
	if a.Prefix != nil {
		sharing := overTime(t, "Sharing over time", figure.Axis{Label: "Share of prompt tokens", Quantity: figure.Percent})
		addValues(&sharing, t, "hits of an infinite cache", analyze.Window.HitRate)
		addValues(&sharing, t, "in any other prompt", analyze.Window.ContextShare)
		figures = append(figures, sharing)
	}
	for i := range figures[1:] {
		figures[i+1].Note += estimated
	}
	return figures
}

// estimatedTimes returns a remark to append to the note of a figure.
func estimatedTimes(a *analyze.Analysis) string {
	if n := a.Arrivals.Estimated; n > 0 {
		return "; the times of " + doc.Count(n, "request") + " are estimated"
	}
	return ""
}

func orNaN(v trace.Opt[float64]) float64 {
	if !v.Set {
		return math.NaN()
	}
	return v.Value
}

func meanISL(w analyze.Window) trace.Opt[float64] { return w.ISL.Mean() }
func meanOSL(w analyze.Window) trace.Opt[float64] { return w.OSL.Mean() }

func overTime(t *analyze.Time, title string, y figure.Axis) figure.Figure {
	x := figure.Axis{Label: "Time of the trace", Quantity: figure.Duration}
	return figure.Figure{Title: title, Note: "mean of each " + x.Text(t.Step/1000), X: x, Y: y}
}

func addValues(f *figure.Figure, t *analyze.Time, name string, of func(analyze.Window) trace.Opt[float64]) {
	f.Series = append(f.Series, steps(name, t.Windows, of))
}

// steps draws a value of each window; a window without one is a gap.
func steps(name string, windows []analyze.Window, of func(analyze.Window) trace.Opt[float64]) figure.Series {
	s := figure.Series{Name: name, Kind: figure.Steps}
	for _, w := range windows {
		s.X, s.Y = append(s.X, w.From/1000), append(s.Y, orNaN(of(w)))
	}
	last := len(windows) - 1
	s.X, s.Y = append(s.X, windows[last].To/1000), append(s.Y, s.Y[last])
	return s
}

// addChanges adds the means of regimes, if there are several, and a trend.
func addChanges(f *figure.Figure, t *analyze.Time, v analyze.Variation, of func(analyze.Window) trace.Opt[float64]) {
	f.NoLegend = false
	if len(t.Regimes) > 1 {
		regimes := make([]analyze.Window, len(t.Regimes))
		for i, r := range t.Regimes {
			regimes[i] = r.Window
		}
		f.Series = append(f.Series, steps("regimes", regimes, of))
	}
	if v.Drifts {
		from, to := t.Windows[0].From, t.Windows[len(t.Windows)-1].To
		trend := figure.Series{Name: "trend", Kind: figure.Line, Dashed: true}
		const points = 200 // a line of few has dots
		for i := range points + 1 {
			at := from + (to-from)*float64(i)/points
			trend.X = append(trend.X, at/1000)
			trend.Y = append(trend.Y, v.Median+v.Trend.Slope*(at-(from+to)/2)/t.Step)
		}
		f.Series = append(f.Series, trend)
	}
}
