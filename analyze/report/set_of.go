package report

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/trace"
)

// SweepOf returns the report of the runs of sweeps over the same quantity, at least one,
// with deployments and shapes in order of occurrence.
func SweepOf(subject string, runs []experiment.Trial, v View) Set {
	axis, _ := runs[0].Load()
	s := Set{Title: "LOAD SWEEP", Subject: subject, Axis: axis, Metrics: setMetrics(axis, v), Gates: v.Gates}
	for _, r := range runs {
		label, shape := r.Label(), r.Shape()
		i := slices.IndexFunc(s.Groups, func(g *Group) bool { return g.Label == label && g.Shape == shape })
		if i < 0 {
			i = len(s.Groups)
			s.Groups = append(s.Groups, &Group{Label: label, Shape: shape})
		}
		s.Groups[i].Points = append(s.Groups[i].Points, s.measured(r, v))
	}
	return s
}

// measured returns a run as a point.
func (s *Set) measured(r experiment.Trial, v View) *Point {
	p := &Point{AxisValue: r.Get(s.Axis), Run: Run{Name: filepath.Base(r.Dir), Dir: r.Dir, Info: r.Run, Result: r.Metrics, View: v}}
	p.Judgements = p.Run.Judgements()
	for _, m := range s.Metrics {
		p.Values = append(p.Values, m.Value(r.Metrics))
	}
	return p
}

// SearchOf returns the report of searches, at least one, for the largest load that meets the
// gates of a view, with runs sorted by load.
func SearchOf(subject string, found []*experiment.Answer, v View) Set {
	s := Set{Title: "LOAD SEARCH", Subject: subject, Axis: found[0].Setting, Metrics: setMetrics(found[0].Setting, v), Gates: v.Gates}
	for _, f := range found {
		g := &Group{Label: f.Trials[0].Label(), Shape: f.Trials[0].Shape(), Found: f}
		for _, l := range slices.SortedStableFunc(slices.Values(f.Trials), func(a, b experiment.Trial) int { return cmp.Compare(a.Level(), b.Level()) }) {
			p := s.measured(l, v)
			p.Judgements, p.Outcome = l.Judgements, trialOutcome(&l)
			g.Points = append(g.Points, p)
		}
		s.Groups = append(s.Groups, g)
	}
	return s
}

// Keys of metrics that only deployments have, and of their throughput.
const (
	enginesKey    = "engines"
	throughputKey = "output_throughput"
	perEngineKey  = "output_throughput_per_engine"
)

// PlanMetrics returns the metrics of a plan.
func PlanMetrics(v View) []measure.Metric { return setMetrics(Deployments, v) }

// Plan holds the predictions for several deployments under a trace.
type Plan struct {
	Trace       string                  // name
	Requests    int                     // of the trace
	View        View                    // its Gates are the objectives
	Predictions []experiment.Prediction // of [PlanMetrics]
	Notes       []string                // on the trace
	HeldOut     map[string]float64      // see [Set]
}

// PlanOf returns the report of a plan.
func PlanOf(plan Plan) Set {
	metrics := PlanMetrics(plan.View)
	throughput := slices.IndexFunc(metrics, func(m measure.Metric) bool { return m.Key == throughputKey })
	s := Set{
		Title: "DEPLOYMENT PLAN", Subject: fmt.Sprintf("%s, %s, simulated in virtual time", plan.Trace, doc.Count(plan.Requests, "request")),
		Axis: Deployments, Gates: plan.View.Gates, Groups: []*Group{{}}, HeldOut: plan.HeldOut,
		Metrics: slices.Concat([]measure.Metric{{Key: enginesKey, Label: "Engines"}, {Key: perEngineKey, Label: "Throughput per engine", Unit: measure.TokensPerSecond}},
			metrics, []measure.Metric{{Key: "mean_queue_ms", Label: "Mean queue", Unit: measure.Milliseconds}}),
	}
	notes := plan.Notes
	if slices.ContainsFunc(plan.Predictions, func(r experiment.Prediction) bool { return r.Disaggregated() }) {
		notes = append(slices.Clip(notes), "3P+2D is a deployment of 3 prefill and 2 decode engines")
	}
	for _, r := range plan.Predictions {
		info := runfile.Run{Settings: settings.Settings{Virtual: true}, Outcome: runfile.Outcome{Trace: runfile.Source{Name: plan.Trace}, Target: runfile.Target{Simulated: true}, Notes: slices.Concat(notes, r.Warnings)}}
		info.Ended = time.Unix(1, 0) // it is complete
		p := &Point{
			AxisValue: r.Name(), Judgements: r.Judgements,
			Values: slices.Concat([]trace.Opt[float64]{trace.Some(float64(r.Total())), r.PerEngine(r.Values[throughput])}, r.Values, []trace.Opt[float64]{r.MeanQueue()}),
			Run:    Run{Name: r.Name(), Info: info, Result: &measure.Result{Verdict: r.Verdict, Completed: r.Completed, Failed: r.Failed}},
		}
		if len(plan.View.Gates) > 0 {
			p.Outcome = map[bool]string{true: "met", false: "missed"}[r.Met]
		}
		s.Groups[0].Points = append(s.Groups[0].Points, p)
	}
	return s
}
