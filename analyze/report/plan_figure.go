package report

import (
	"cmp"
	"slices"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/replay/bench"
)

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

// frontStep is by how much a deployment on the front has more throughput per engine than
// those with a lower latency. Less would be an accident of when the last request ends.
const frontStep = 0.005

// points returns the deployments with a latency and a throughput, by latency, and
// whether they are on the Pareto front.
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
		if all[i].throughput > best*(1+frontStep) {
			all[i].onFront, best = true, all[i].throughput
		}
	}
	return all
}

// front returns the names of the deployments on the front, by latency.
func (p Plan) front(m run.Metric) (names []string) {
	for _, at := range p.points(m) {
		if at.onFront {
			names = append(names, at.of.Name())
		}
	}
	return names
}

// figure draws throughput per engine against a latency, with the Pareto front.
func (p Plan) figure(m run.Metric) figure.Figure {
	f := figure.Figure{
		Title: m.Label, X: figure.Axis{Label: m.Label, Quantity: figure.Duration},
		Y: figure.Axis{Label: "Throughput per engine", Unit: "tok/s"},
	}
	front := figure.Series{Name: "Pareto front", Kind: figure.Line}
	all := figure.Series{Name: "deployments", Kind: figure.Points}
	points := p.points(m)
	for _, at := range points {
		for _, s := range []*figure.Series{&front, &all} {
			if s == &all || at.onFront {
				s.X, s.Y = append(s.X, at.latency), append(s.Y, at.throughput)
				s.Labels = append(s.Labels, doc.Clean(at.of.Name()))
			}
		}
	}
	f.Series = []figure.Series{front, all}
	for _, g := range p.Gates {
		if g.Metric.Key == m.Key {
			f.Marks = append(f.Marks, figure.Mark{Label: "SLO " + doc.Duration(g.Limit), At: g.Limit / 1000, Limit: true})
		}
	}
	if n := len(points); n > 0 {
		// Overloaded deployments would crowd the others into a corner.
		f.X.Log = points[0].latency > 0 && points[n-1].latency > 20*points[0].latency
	}
	return f
}

// addFigures adds the figures of several deployments, and names those on the fronts.
func (p Plan) addFigures(d *doc.Document) {
	if len(p.Predictions) < 2 {
		return
	}
	s := d.Section("Throughput per engine against latency")
	s.Text("Deployments on the Pareto front: no other reaches the same throughput per engine at a lower latency.")
	t := doc.Table{Columns: []string{"Latency", "Pareto front"}, Left: doc.AllLeft}
	for _, l := range []run.Latency{run.TTFT, run.TPOT} {
		m := p.latencyMetric(l)
		t.Add(m.Label, strings.Join(p.front(m), "; "))
	}
	s.Table(t)
	for _, l := range []run.Latency{run.TTFT, run.TPOT} {
		s.Figure(p.figure(p.latencyMetric(l)))
	}
}
