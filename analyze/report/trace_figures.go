package report

import (
	"math"
	"slices"
	"strings"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/trace"
	"moontide/trace/stats"
)

// figures draws the figures that have values.
func (d Trace) figures() []figure.Figure {
	a := d.Analysis
	figures := []figure.Figure{
		histogram("Input sequence length", figure.Axis{Label: "ISL", Unit: "tokens"}, "Requests", a.ISL),
		histogram("Output sequence length", figure.Axis{Label: "OSL", Unit: "tokens"}, "Requests", a.OSL),
	}
	if a.Lengths.Ratios.Count > 0 {
		figures = append(figures, histogram("Input tokens for each output token", figure.Axis{Label: "ISL / OSL"}, "Requests", a.Lengths.Ratios))
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
		if n := a.Untimed.Turns; n > 0 {
			f.Note = "The order of " + doc.Count(n, "turn") + " is estimated from delays"
		}
		figures = append(figures, f)
	}
	if p.Reuse.Time.Count > 0 {
		figures = append(figures, histogram("Reuse intervals", figure.Axis{Label: "Time since a block's last use", Quantity: figure.Duration}, "Block hits", p.Reuse.Time))
	}
	return figures
}

// timeFigures draws rate, lengths and sharing over time.
func timeFigures(a *analyze.Analysis) (figures []figure.Figure) {
	x := figure.Axis{Label: "Time of the trace", Quantity: figure.Duration}
	note := "mean of each " + x.Text(a.Time.Step/1000)
	if n := a.Arrivals.Estimated; n > 0 {
		note += "; the times of " + doc.Count(n, "request") + " are estimated"
	}
	for _, of := range overWindows {
		f := figure.Figure{Title: of.title, Note: note, X: x, Y: of.y}
		for _, line := range of.lines {
			f.Series = append(f.Series, line.steps(a.Time.Windows, 0))
		}
		if drawn(f) > 0 {
			figures = append(figures, f)
		}
	}
	return figures
}

// overWindows lists the figures over time. Several traces share the first line of each.
var overWindows = []struct {
	title string
	y     figure.Axis
	lines []windowLine
}{
	{"Arrivals over time", figure.Axis{Label: "Arrival rate", Unit: "requests/s"}, []windowLine{{"arrivals", analyze.Window.Rate}}},
	{"ISL over time", figure.Axis{Label: "Mean ISL", Unit: "tokens"}, []windowLine{{"ISL", analyze.Window.MeanISL}}},
	{"OSL over time", figure.Axis{Label: "Mean OSL", Unit: "tokens"}, []windowLine{{"OSL", analyze.Window.MeanOSL}}},
	{"Sharing over time", figure.Axis{Label: "Share of prompt tokens", Quantity: figure.Percent}, []windowLine{
		{"hits of an infinite cache", analyze.Window.HitRate}, {"in any other prompt", analyze.Window.ContextShare},
	}},
}

type windowLine struct {
	name  string
	value func(analyze.Window) trace.Opt[float64]
}

// steps draws the values since a time in milliseconds; a window without one is a gap.
func (l windowLine) steps(windows []analyze.Window, since float64) figure.Series {
	s := figure.Series{Name: l.name, Kind: figure.Steps}
	if !slices.ContainsFunc(windows, func(w analyze.Window) bool { return l.value(w).Set }) {
		return s
	}
	for _, w := range windows {
		value := l.value(w)
		if !value.Set {
			value.Value = math.NaN()
		}
		s.Add((w.From-since)/1000, value.Value, "")
	}
	last := len(windows) - 1
	s.Add((windows[last].To-since)/1000, s.Y[last], "")
	return s
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
	capacities := c.Curve.Spaced(curvePoints)
	least := c.Curve.Largest() / 1000         // of the flat end
	if len(capacities) == c.Curve.Largest() { // every size: the rate is constant up to the next
		lru.Kind = figure.Steps
	}
	for _, capacity := range capacities {
		if capacity >= least {
			lru.Add(float64(capacity)*scale, c.Curve.At(capacity).Rates().Block, "")
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
				s.Add(float64(p.Capacity)*scale, p.Hits.Rates().Block, "")
			}
		}
		series = append(series, s)
	}
	f.Series = append(series[:1], figure.Drawn(series[1:]...)...) // the LRU curve may be empty
	f.Marks = []figure.Mark{{Label: "infinite", At: c.Curve.Infinite().Rates().Block, OnY: true, Dashed: true}}
	return f
}

func policyName(p cache.Policy) string {
	if p == cache.Belady {
		return "Belady's bound"
	}
	return strings.ToUpper(string(p))
}

// figures draws cumulative distributions, LRU curves, and values over time from the first
// arrival of each trace. Each figure has all traces with values.
func (c Traces) figures() (figures []figure.Figure) {
	var names []string
	for _, data := range c {
		names = append(names, data.Name)
	}
	add := func(f figure.Figure) {
		if drawn(f) > 0 {
			figures = append(figures, f)
		}
	}
	for _, of := range []struct {
		title  string
		x      figure.Axis
		of     string
		sample func(a *analyze.Analysis) stats.Sample
	}{
		{"Input sequence length", figure.Axis{Label: "ISL", Unit: "tokens"}, "Requests of at most this length", func(a *analyze.Analysis) stats.Sample { return a.ISL }},
		{"Output sequence length", figure.Axis{Label: "OSL", Unit: "tokens"}, "Requests of at most this length", func(a *analyze.Analysis) stats.Sample { return a.OSL }},
		{"Inter-arrival times", figure.Axis{Label: "From one arrival to the next", Quantity: figure.Duration}, "Gaps of at most this time", func(a *analyze.Analysis) stats.Sample {
			at, _ := orZero(a.Arrivals)
			return at.Gaps
		}},
		{"Turn gaps", figure.Axis{Label: "From a turn's arrival to the next", Quantity: figure.Duration}, "Turns of at most this time", func(a *analyze.Analysis) stats.Sample {
			s, _ := orZero(a.Sessions)
			return s.Gap
		}},
		{"Observed context", figure.Axis{Label: "Shared part of a prompt", Unit: "tokens"}, "Requests of at most this length", func(a *analyze.Analysis) stats.Sample {
			p, _ := orZero(a.Prefix)
			return p.Context
		}},
	} {
		var samples []stats.Sample
		for _, data := range c {
			samples = append(samples, of.sample(data.Analysis))
		}
		add(overlay(of.title, of.x, of.of, names, samples))
	}
	lru := figure.Figure{Title: "LRU hit rate against cache size"}
	for _, data := range c {
		if data.Cache.known() {
			one := data.Cache.figure()
			lru.X, lru.Y = one.X, one.Y
		}
	}
	add(withLines(lru, names, func(i int) (line figure.Series) {
		if cache := c[i].Cache; cache.known() {
			line = cache.figure().Series[0]
		}
		return line
	}))
	for _, of := range overWindows {
		x := figure.Axis{Label: "Time since the first arrival", Quantity: figure.Duration}
		f := figure.Figure{Title: of.title, Note: of.lines[0].name + ", mean of each window", X: x, Y: of.y}
		add(withLines(f, names, func(i int) (line figure.Series) {
			if t := c[i].Analysis.Time; t != nil {
				line = of.lines[0].steps(t.Windows, t.Windows[0].From)
			}
			return line
		}))
	}
	return figures
}
