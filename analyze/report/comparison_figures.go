package report

import (
	"math"
	"slices"
	"strings"

	"moontide/analyze"
	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/trace"
	"moontide/trace/stats"
)

// figures draws what the distances measure, cumulative distributions and LRU curves,
// and what changes over time. All traces are in each figure, but those without values.
func (c Comparison) figures() []figure.Figure {
	figures := []figure.Figure{
		c.cumulative("Input sequence length", "ISL", func(d Dataset) stats.Sample { return d.Analysis.ISL }),
		c.cumulative("Output sequence length", "OSL", func(d Dataset) stats.Sample { return d.Analysis.OSL }),
	}
	figures = append(figures, c.timings()...)
	if slices.ContainsFunc(c, func(d Dataset) bool { return d.Analysis.Prefix != nil }) {
		figures = append(figures, c.cumulative("Observed context", "Shared part of a prompt", func(d Dataset) stats.Sample {
			p, _ := orZero(d.Analysis.Prefix)
			return p.Context
		}))
	}
	if slices.ContainsFunc(c, func(d Dataset) bool { return d.Cache.known() }) {
		figures = append(figures, c.lruFigure())
	}
	return append(figures, c.overTime()...)
}

// timings draws the distributions of times, if at least one trace has any.
func (c Comparison) timings() (figures []figure.Figure) {
	add := func(title, label, of string, sample func(*analyze.Analysis) stats.Sample) {
		f := c.cumulative(title, label, func(d Dataset) stats.Sample { return sample(d.Analysis) })
		f.X.Unit, f.X.Quantity, f.Y.Label = "", figure.Duration, of+" of at most this time"
		for _, s := range f.Series {
			for i := range s.X {
				s.X[i] /= 1000
			}
		}
		if drawn(f) > 0 {
			figures = append(figures, f)
		}
	}
	add("Inter-arrival times", "From one arrival to the next", "Gaps", func(a *analyze.Analysis) stats.Sample {
		at, _ := orZero(a.Arrivals)
		return at.Gaps
	})
	add("Turn gaps", "From a turn's arrival to the next", "Turns", func(a *analyze.Analysis) stats.Sample {
		s, _ := orZero(a.Sessions)
		return s.Gap
	})
	return figures
}

// overTime draws rate, lengths and hit rate over time, each trace from its first
// arrival on.
func (c Comparison) overTime() (figures []figure.Figure) {
	shares := c.spans() > 20 // the short ones would be at the edge
	share := figure.Axis{Label: "Hits of an infinite cache", Quantity: figure.Percent}
	for _, q := range []struct {
		title string
		y     figure.Axis
		of    func(analyze.Window) trace.Opt[float64]
	}{
		{"Arrivals over time", figure.Axis{Label: "Arrival rate", Unit: "requests/s"}, analyze.Window.Rate},
		{"ISL over time", figure.Axis{Label: "Mean ISL", Unit: "tokens"}, analyze.Window.MeanISL},
		{"OSL over time", figure.Axis{Label: "Mean OSL", Unit: "tokens"}, analyze.Window.MeanOSL},
		{"Token hit rate over time", share, analyze.Window.HitRate},
	} {
		f := figure.Figure{
			Title: q.title, Note: "mean of each window", Y: q.y,
			X: figure.Axis{Label: "Time since the first arrival", Quantity: figure.Duration},
		}
		if shares {
			f.X = figure.Axis{Label: "Share of the trace's duration", Quantity: figure.Percent}
		}
		c.addLines(&f, func(data Dataset) figure.Series { return overWindows(data.Analysis.Time, q.of, shares) })
		if drawn(f) > 0 {
			figures = append(figures, f)
		}
	}
	return figures
}

// spans returns the ratio of the longest duration to the shortest.
func (c Comparison) spans() float64 {
	shortest, longest := math.Inf(1), 0.0
	for _, data := range c {
		if data.Analysis.Time != nil {
			duration := data.Analysis.Arrivals.Duration()
			shortest, longest = min(shortest, duration), max(longest, duration)
		}
	}
	return longest / shortest
}

// overWindows draws a value of each window from the first on, over seconds or shares of the
// trace's duration. It leaves out short windows at the ends, whose rates are of few requests.
func overWindows(t *analyze.Time, of func(analyze.Window) trace.Opt[float64], shares bool) (s figure.Series) {
	if t == nil {
		return s
	}
	var windows []analyze.Window
	known := false
	for _, w := range t.Windows {
		if 2*(w.To-w.From) >= t.Step || len(t.Windows) == 1 {
			windows = append(windows, w)
			known = known || of(w).Set
		}
	}
	if !known {
		return s
	}
	s = steps("", windows, of)
	first, unit := t.Windows[0].From/1000, 1.0
	if shares {
		unit = t.Windows[len(t.Windows)-1].To/1000 - first
	}
	for i := range s.X {
		s.X[i] = (s.X[i] - first) / unit
	}
	return s
}

// addLines adds a line of each trace. One without points has no name, and keeps its
// colour for the other figures. A line that is alone has no legend: the note names it.
func (c Comparison) addLines(f *figure.Figure, of func(Dataset) figure.Series) {
	only := ""
	for _, data := range c {
		line := of(data)
		if line.Name = ""; len(line.X) > 0 {
			line.Name = doc.Clean(data.Name)
			only = line.Name
		}
		f.Series = append(f.Series, line)
	}
	if drawn(*f) == 1 && len(c) > 1 {
		f.Note = strings.TrimPrefix(f.Note+"; only "+only, "; ")
	}
}

// drawn counts the lines with points.
func drawn(f figure.Figure) int { return len(figure.Drawn(slices.Clone(f.Series)...)) }

// cumulativePoints is the number of points of a distribution.
const cumulativePoints = 1000

// cumulative draws the share of requests with at most so many tokens. The axis is
// logarithmic, so a curve starts above 0 if some requests have none.
func (c Comparison) cumulative(title, label string, of func(Dataset) stats.Sample) figure.Figure {
	f := figure.Figure{
		Title: title,
		X:     figure.Axis{Label: label, Unit: "tokens", Log: true},
		Y:     figure.Axis{Label: "Requests of at most this length", Quantity: figure.Percent},
	}
	c.addLines(&f, func(data Dataset) (line figure.Series) {
		for i := range cumulativePoints + 1 {
			share := float64(i) / cumulativePoints
			if value := of(data).Quantile(share); value > 0 {
				line.X, line.Y = append(line.X, value), append(line.Y, share)
			}
		}
		return line
	})
	return f
}

func (c Comparison) lruFigure() (f figure.Figure) {
	c.addLines(&f, func(data Dataset) (line figure.Series) {
		if data.Cache.known() {
			one := data.Cache.figure()
			f.X, f.Y, line = one.X, one.Y, one.Series[0]
		}
		return line
	})
	f.Title = "LRU hit rate against cache size"
	return f
}
