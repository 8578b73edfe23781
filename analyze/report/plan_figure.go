package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/replay/bench"
)

// searchesLoads reports whether the predictions have different loads.
func (p Plan) searchesLoads() bool { return p.varies(bench.Speedup) || p.varies(bench.Concurrency) }

// figures draws throughput per engine against TTFT and TPOT, with the Pareto front or, after
// a search for a load, a line for each deployment.
func (p Plan) figures() (all []figure.Figure) {
	for _, l := range []run.Latency{run.TTFT, run.TPOT} {
		m := p.latencyMetric(l)
		f := figure.Figure{
			Title: m.Label, X: figure.Axis{Label: m.Label, Quantity: figure.Duration},
			Y: figure.Axis{Label: "Throughput per engine", Unit: "tok/s"},
		}
		points := p.points(m)
		if p.searchesLoads() {
			f.Series = loadCurves(points)
		} else {
			f.Series = p.fronts(points)
		}
		p.setRange(&f, m, points)
		all = append(all, f)
	}
	return all
}

// beyondLimit is where the figure ends if there are deployments beyond: a multiple of the
// limit.
const beyondLimit = 3

// setRange marks the limits of gates and sets the range of latencies. Overloaded
// deployments would crowd the others into a corner.
func (p Plan) setRange(f *figure.Figure, m run.Metric, points []planPoint) {
	most, end := 0.0, 0.0
	for _, at := range points {
		most = max(most, at.latency)
	}
	for _, g := range p.Gates {
		if limit := g.Limit / 1000; g.Metric.Key == m.Key {
			f.Marks = append(f.Marks, figure.Mark{Label: "SLO " + doc.Duration(g.Limit), At: limit, Limit: true})
			end = max(end, beyondLimit*limit)
		}
	}
	beyond := 0
	for _, at := range points {
		if at.latency > end {
			beyond++
		}
	}
	if beyond > 0 && beyond < len(points) && end > 0 {
		f.X.Max, most = &end, end
		f.Note = fmt.Sprintf("%s beyond %s", doc.Count(beyond, "point"), doc.Duration(1000*end))
	}
	if n := len(points); n > 0 {
		least := slices.MinFunc(points, func(a, b planPoint) int { return cmp.Compare(a.latency, b.latency) }).latency
		f.X.Log = least > 0 && most > 20*least
	}
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
	number     int     // among the predictions, which are in order of load
	latency    float64 // in seconds
	throughput float64 // per engine
	onFront    bool
}

func (at planPoint) addTo(s *figure.Series, label string) {
	s.X, s.Y = append(s.X, at.latency), append(s.Y, at.throughput)
	s.Labels = append(s.Labels, doc.Clean(label))
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
			all = append(all, planPoint{of: r, number: i, latency: latency.Value / 1000, throughput: throughput.Value})
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

// fronts returns the Pareto front, and all deployments by variant.
func (p Plan) fronts(points []planPoint) []figure.Series {
	front := figure.Series{Name: "Pareto front", Kind: figure.Line}
	families := map[string]*figure.Series{}
	for _, at := range points {
		name := p.family(at.of)
		if families[name] == nil {
			families[name] = &figure.Series{Name: doc.Clean(cmp.Or(name, "deployments")), Kind: figure.Points}
		}
		at.addTo(families[name], PredictionName(at.of))
		if at.onFront {
			at.addTo(&front, PredictionName(at.of))
		}
	}
	all := []figure.Series{front}
	for _, r := range p.Predictions { // in order
		name := p.family(&r)
		if s := families[name]; s != nil {
			all = append(all, *s)
			delete(families, name)
		}
	}
	return all
}

// loadCurves returns a line for each deployment, from the lowest load to the highest.
func loadCurves(points []planPoint) (all []figure.Series) {
	byLoad := slices.Clone(points)
	slices.SortStableFunc(byLoad, func(a, b planPoint) int { return cmp.Compare(a.number, b.number) })
	for _, at := range byLoad {
		name := doc.Clean(at.of.Name())
		i := slices.IndexFunc(all, func(s figure.Series) bool { return s.Name == name })
		if i < 0 {
			i = len(all)
			all = append(all, figure.Series{Name: name, Kind: figure.Line})
		}
		at.addTo(&all[i], bench.FormatLevel(at.of.Load.Level))
	}
	return all
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

// addFigures adds the figures, and names the deployments on the fronts.
func (p Plan) addFigures(d *doc.Document) {
	if len(p.Predictions) < 2 {
		return
	}
	s := d.Section("Throughput per engine against latency")
	if !p.searchesLoads() {
		s.Text("Deployments on the Pareto front: no other reaches the same throughput per engine at a lower latency.")
		t := doc.Table{Columns: []string{"Latency", "Pareto front"}, Left: doc.AllLeft}
		for _, l := range []run.Latency{run.TTFT, run.TPOT} {
			m := p.latencyMetric(l)
			t.Add(m.Label, strings.Join(p.front(m), "; "))
		}
		s.Table(t)
	}
	for _, f := range p.figures() {
		s.Figure(f)
	}
}

// front returns the names of the deployments on the front, by latency.
func (p Plan) front(m run.Metric) (names []string) {
	for _, at := range p.points(m) {
		if at.onFront {
			names = append(names, PredictionName(at.of))
		}
	}
	return names
}
