package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/replay/bench"
)

// PNG draws throughput per engine against TTFT and TPOT, with the deployments on the
// Pareto front: no other has more throughput per engine and a lower latency.
func (p Plan) PNG(w io.Writer) error { return figure.WritePNG(w, p.sheet(), figure.Options{}) }

func (p Plan) sheet() figure.Sheet {
	return figure.Sheet{
		Title: "Throughput per engine against latency",
		Note:  doc.Clean(fmt.Sprintf("%s, %s, simulated; the line joins the deployments that no other beats in both", p.Trace, doc.Count(p.Requests, "request"))),
		Rows:  []figure.Row{{Figures: p.figures()}},
	}
}

func (p Plan) figures() []figure.Figure {
	return []figure.Figure{p.figure(run.TTFT), p.figure(run.TPOT)}
}

// latencyMetric returns the metric that stands for a latency: that of the first gate on
// it, else its mean.
func (p Plan) latencyMetric(l run.Latency) run.Metric {
	for _, g := range p.Gates {
		if g.Metric.Latency == l {
			return g.Metric
		}
	}
	return l.Metric(run.Mean)
}

// planPoint is a deployment in the figure.
type planPoint struct {
	of         *bench.Prediction
	latency    float64 // in seconds
	throughput float64 // per engine
	onFront    bool
}

// points returns the deployments with a latency and a throughput, by latency, and
// whether no other one has at least as much throughput per engine with no higher
// latency.
func (p Plan) points(m run.Metric) (all []planPoint) {
	for i := range p.Predictions {
		r := &p.Predictions[i]
		latency, throughput := p.value(&r.Forecast, m.Key), r.PerEngine(p.value(&r.Forecast, planThroughput))
		if latency.Set && throughput.Set && r.Verdict.Level != run.Invalid {
			all = append(all, planPoint{of: r, latency: latency.Value / 1000, throughput: throughput.Value})
		}
	}
	slices.SortStableFunc(all, func(a, b planPoint) int {
		return cmp.Or(cmp.Compare(a.latency, b.latency), cmp.Compare(b.throughput, a.throughput))
	})
	best := 0.0
	for i := range all {
		if all[i].throughput > best {
			all[i].onFront, best = true, all[i].throughput
		}
	}
	return all
}

// figure draws the front, and below it the other deployments by variant.
func (p Plan) figure(l run.Latency) figure.Figure {
	m := p.latencyMetric(l)
	f := figure.Figure{
		Title: m.Label, X: figure.Axis{Label: m.Label, Quantity: figure.Duration},
		Y: figure.Axis{Label: "Throughput per engine", Unit: "tok/s"},
	}
	points := p.points(m)
	front := figure.Series{Name: "Pareto front", Kind: figure.Line}
	others := map[string]*figure.Series{}
	for _, at := range points {
		to := &front
		if !at.onFront {
			name := cmp.Or(p.family(at.of), "other deployments")
			if others[name] == nil {
				others[name] = &figure.Series{Name: doc.Clean(name), Kind: figure.Points}
			}
			to = others[name]
		}
		to.X, to.Y = append(to.X, at.latency), append(to.Y, at.throughput)
		to.Labels = append(to.Labels, doc.Clean(labelOf(at.of)))
	}
	f.Series = append(f.Series, front)
	for _, r := range p.Predictions { // in order
		name := cmp.Or(p.family(&r), "other deployments")
		if s := others[name]; s != nil {
			f.Series = append(f.Series, *s)
			delete(others, name)
		}
	}
	for _, g := range p.Gates {
		if g.Metric.Key == m.Key {
			f.Marks = append(f.Marks, figure.Mark{Label: "limit " + doc.Duration(g.Limit), At: g.Limit / 1000, Dashed: true})
		}
	}
	if n := len(points); n > 0 {
		// On a linear axis, widely spread latencies would crowd the small ones into a corner.
		if f.X.Log = points[0].latency > 0 && points[n-1].latency > 20*points[0].latency; !f.X.Log {
			f.X.Min = new(float64)
		}
	}
	return f
}

// family names the deployments that differ in their number of engines only, "" if all
// do.
func (p Plan) family(r *bench.Prediction) string {
	mixed := slices.ContainsFunc(p.Predictions, func(o bench.Prediction) bool { return o.Disaggregated() != r.Disaggregated() })
	var words []string
	switch {
	case mixed && r.Disaggregated():
		words = append(words, "disaggregated")
	case mixed:
		words = append(words, "aggregated")
	}
	if r.Variant != "" {
		words = append(words, r.Variant)
	}
	return strings.Join(words, ", ")
}

// addFront names the deployments on the fronts, and draws them.
func (p Plan) addFront(d *doc.Document) {
	if len(p.Predictions) < 2 {
		return
	}
	s := d.Section("Pareto front")
	s.Text("No other deployment has more throughput per engine with a lower latency:")
	t := doc.Table{Columns: []string{"Latency", "Deployments"}, Left: doc.AllLeft}
	for _, l := range []run.Latency{run.TTFT, run.TPOT} {
		m := p.latencyMetric(l)
		t.Add(m.Label, strings.Join(p.front(m), "; "))
	}
	s.Table(t)
	for _, f := range p.figures() {
		s.Figure(f)
	}
}

// front returns the names of the deployments on the front, by latency.
func (p Plan) front(m run.Metric) (names []string) {
	for _, at := range p.points(m) {
		if at.onFront {
			names = append(names, labelOf(at.of))
		}
	}
	return names
}
