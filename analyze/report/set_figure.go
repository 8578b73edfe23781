package report

import (
	"cmp"
	"slices"
	"strings"

	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/slo"
	"moontide/trace"
)

// addFigures draws throughput against latency, a dot per run: with a line per group, or
// with the Pareto front of deployments.
func (s *Set) addFigures(d *doc.Document) {
	e2el, ttft, tpot := s.latency(measure.E2EL, "E2E latency"), s.latency(measure.TTFT, "TTFT"), s.latency(measure.TPOT, "TPOT")
	output := metric{axis: figure.Axis{Label: "Output throughput", Unit: "tok/s"}, of: s.metric(throughputKey, 1)}
	if s.Axis == Deployments {
		s.addFronts(d, ttft, tpot)
		return
	}
	perUser := metric{axis: figure.Axis{Label: "Per-user output", Unit: "tok/s"}, of: func(p *Point) trace.Opt[float64] {
		mean := s.value(p, measure.TPOT.Metric(measure.Mean).Key)
		return trace.Opt[float64]{Value: 1000 / mean.Value, Set: mean.Set && mean.Value > 0}
	}}
	to := d.DetailSection("Throughput against latency")
	for _, x := range []metric{e2el, ttft, tpot, perUser} {
		to.Figures(s.figure(x.axis.Label, x, output))
	}
	if !strings.HasPrefix(s.Axis, "max-") { // requests may be sent at another rate than requested
		load := metric{axis: figure.Axis{Label: "Achieved request rate", Unit: "req/s"}, of: s.metric("achieved_rate", 1)}
		to.Figures(s.figure(ttft.axis.Label+" by load", load, ttft))
		to.Figures(s.figure(tpot.axis.Label+" by load", load, tpot))
	}
}

// addFronts draws throughput per engine against latencies, and names the deployments on the
// Pareto fronts.
func (s *Set) addFronts(d *doc.Document, latencies ...metric) {
	if len(s.Groups[0].Points) < 2 {
		return
	}
	to := d.Section("Throughput per engine against latency")
	to.Text("Deployments on the Pareto front: no other reaches the same throughput per engine at a lower latency.")
	t := doc.Table{Columns: []string{"Latency", "Pareto front"}, Left: doc.AllLeft}
	var figures []figure.Figure
	for _, x := range latencies {
		f := s.figure(x.axis.Label, x, metric{axis: figure.Axis{Label: "Throughput per engine", Unit: "tok/s"}, of: s.metric(perEngineKey, 1)})
		front, all := front(f.Series[0])
		f.Series = []figure.Series{front, all}
		t.Add(f.Title, strings.Join(front.Labels, "; "))
		figures = append(figures, f)
	}
	to.Table(t)
	to.Figures(figures...)
}

// front returns the points of deployments by latency, and those on the Pareto front. It
// ignores half a percent more throughput, which depends on the end of the last request.
func front(of figure.Series) (front, all figure.Series) {
	const step = 1.005
	order := make([]int, len(of.X))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(of.X[a], of.X[b]), cmp.Compare(of.Y[b], of.Y[a]))
	})
	front, all = figure.Series{Name: "Pareto front", Kind: figure.Line}, figure.Series{Name: "deployments", Kind: figure.Points}
	best := 0.0
	for _, i := range order {
		if all.Add(of.X[i], of.Y[i], of.Labels[i]); of.Y[i] > best*step {
			front.Add(of.X[i], of.Y[i], of.Labels[i])
			best = of.Y[i]
		}
	}
	return front, all
}

// metric is a value of a run on an axis, and its limits.
type metric struct {
	axis   figure.Axis
	of     func(p *Point) trace.Opt[float64]
	limits []figure.Mark
}

// metric returns a value of runs in a unit of the metric's.
func (s *Set) metric(key string, unit float64) func(p *Point) trace.Opt[float64] {
	return func(p *Point) trace.Opt[float64] {
		v := s.value(p, key)
		v.Value /= unit
		return v
	}
}

// latency returns the statistic of the first gate on a latency, with its limit, or the mean.
func (s *Set) latency(l measure.Latency, name string) metric {
	m, label, limits := l.Metric(measure.Mean), "Mean "+name, []figure.Mark(nil)
	for _, g := range s.Gates {
		if g.Metric.Latency == l && g.Kind == slo.OfValue {
			m, label = g.Metric, g.Metric.Label
			limits = []figure.Mark{{Label: "SLO " + doc.Duration(g.Limit), At: g.Limit / 1000, Limit: true}}
			break
		}
	}
	return metric{figure.Axis{Label: label, Quantity: figure.Duration}, s.metric(m.Key, 1000), limits}
}

// figure draws y against x, on logarithmic axes if the values are widely spread.
func (s *Set) figure(title string, x, y metric) figure.Figure {
	f := figure.Figure{Title: title, Note: "dots are labelled with the " + strings.ToLower(headings[s.Axis]), X: x.axis, Y: y.axis}
	var xs, ys []float64
	for _, g := range s.Groups {
		series := figure.Series{Name: doc.Clean(g.name()), Kind: figure.Line}
		for _, p := range g.Points {
			x, y := x.of(p), y.of(p)
			if !x.Set || !y.Set || s.Axis == Deployments && p.Result.Verdict.Level == measure.Invalid {
				continue
			}
			xs, ys = append(xs, x.Value), append(ys, y.Value)
			series.Add(x.Value, y.Value, doc.Clean(p.mark()))
			if p.mark() != p.AxisValue && !strings.HasSuffix(f.Note, "VALID") {
				f.Note += "; " + notValid + " is not VALID"
			}
		}
		f.Series = append(f.Series, series)
	}
	if f.X.Log = wide(xs, 20); !f.X.Log {
		f.X.Min = new(float64)
	}
	f.Y.Log = f.Y.Quantity == figure.Duration && wide(ys, 50)
	for _, m := range x.limits {
		if len(xs) > 0 && m.At <= 2*slices.Max(xs) {
			f.Marks = append(f.Marks, m)
		}
	}
	for _, m := range y.limits {
		if m.OnY = true; len(ys) > 0 && m.At <= 2*slices.Max(ys) {
			f.Marks = append(f.Marks, m)
		}
	}
	return f
}

// wide reports whether the highest value is more than times the lowest.
func wide(all []float64, times float64) bool {
	return len(all) > 0 && slices.Min(all) > 0 && slices.Max(all) > times*slices.Min(all)
}
