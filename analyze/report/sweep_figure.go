package report

import (
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/replay/bench"
	"moontide/trace"
)

// addFigures draws throughput against latency: a line per deployment, a dot per run.
func (s Sweep) addFigures(to *doc.Section) {
	e2el, ttft, tpot := s.latency(run.E2EL, "E2E latency"), s.latency(run.TTFT, "TTFT"), s.latency(run.TPOT, "TPOT")
	perUser := measure{axis: figure.Axis{Label: "Per-user output", Unit: "tok/s"}, of: func(r *run.Result) trace.Opt[float64] {
		mean := run.TPOT.Metric(run.Mean).Value(r)
		return trace.Opt[float64]{Value: 1000 / mean.Value, Set: mean.Set && mean.Value > 0}
	}}
	output := measure{axis: figure.Axis{Label: "Output throughput", Unit: "tok/s"}, of: func(r *run.Result) trace.Opt[float64] { return r.OutputRate }}
	for _, x := range []measure{e2el, ttft, tpot, perUser} {
		to.Figure(s.figure(x.axis.Label, x, output))
	}
	if s.Axis != bench.Concurrency { // what was asked for may differ from what was sent
		load := measure{axis: figure.Axis{Label: "Achieved request rate", Unit: "req/s"}, of: func(r *run.Result) trace.Opt[float64] { return r.AchievedRate }}
		to.Figure(s.figure(ttft.axis.Label+" by load", load, ttft))
		to.Figure(s.figure(tpot.axis.Label+" by load", load, tpot))
	}
}

// A measure is a value of a run on an axis, and its limits.
type measure struct {
	axis   figure.Axis
	of     func(r *run.Result) trace.Opt[float64]
	limits []figure.Mark
}

// latency returns what the first gate on a latency limits, with the limit; else its mean.
func (s Sweep) latency(l run.Latency, name string) measure {
	m, label, limits := l.Metric(run.Mean), "Mean "+name, []figure.Mark(nil)
	if g := s.gateOn(l); g != nil {
		m, label = g.Metric, g.Metric.Label
		limits = []figure.Mark{{Label: "SLO " + doc.Duration(g.Limit), At: g.Limit / 1000, Limit: true}}
	}
	return measure{figure.Axis{Label: label, Quantity: figure.Duration}, func(r *run.Result) trace.Opt[float64] {
		v := m.Value(r)
		v.Value /= 1000
		return v
	}, limits}
}

// gateOn returns the first gate on the values of a latency, nil if there is none.
func (s Sweep) gateOn(l run.Latency) *run.Gate {
	for _, d := range s.Deployments {
		for _, p := range d.Points {
			for i := range p.Judgements {
				if g := &p.Judgements[i].Gate; g.Metric.Latency == l && g.Kind == run.OfValue {
					return g
				}
			}
		}
	}
	return nil
}

// figure draws y against x. On a linear axis, widely spread values would crowd the small
// ones into a corner.
func (s Sweep) figure(title string, x, y measure) figure.Figure {
	f := figure.Figure{Title: title, Note: s.figureNote(), X: x.axis, Y: y.axis}
	var xs, ys stretch
	for _, d := range s.Deployments {
		series := figure.Series{Name: doc.Clean(d.name()), Kind: figure.Line}
		for _, p := range d.Points {
			x, y := x.of(p.Result), y.of(p.Result)
			if !x.Set || !y.Set {
				continue
			}
			xs.add(x.Value)
			ys.add(y.Value)
			series.X = append(series.X, x.Value)
			series.Y = append(series.Y, y.Value)
			series.Labels = append(series.Labels, doc.Clean(p.mark()))
		}
		f.Series = append(f.Series, series)
	}
	if f.X.Log = xs.wide(20); !f.X.Log {
		f.X.Min = new(float64)
	}
	f.Y.Log = f.Y.Quantity == figure.Duration && ys.wide(50)
	for _, m := range x.limits {
		if m.At <= 2*xs.high {
			f.Marks = append(f.Marks, m)
		}
	}
	for _, m := range y.limits {
		if m.OnY = true; m.At <= 2*ys.high {
			f.Marks = append(f.Marks, m)
		}
	}
	return f
}

// stretch is the range of values.
type stretch struct{ low, high float64 }

func (s *stretch) add(v float64) {
	if s.low == 0 || v < s.low {
		s.low = v
	}
	s.high = max(s.high, v)
}

// wide reports whether the highest value is more than this many times the lowest.
func (s stretch) wide(times float64) bool { return s.low > 0 && s.high > times*s.low }

func (s Sweep) figureNote() string {
	note := "dots are labelled with the " + strings.ToLower(s.heading())
	for _, d := range s.Deployments {
		for _, p := range d.Points {
			if p.mark() != p.Level {
				return note + "; " + notValid + " is not VALID"
			}
		}
	}
	return note
}
