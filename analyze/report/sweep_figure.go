package report

import (
	"io"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/trace"
)

// PNG draws throughput against latency: a line per deployment, a dot per run.
func (s Sweep) PNG(w io.Writer) error {
	return figure.WritePNG(w, s.sheet(), figure.Options{})
}

func (s Sweep) sheet() figure.Sheet {
	seconds := func(l run.Latency) func(r *run.Result) trace.Opt[float64] {
		return func(r *run.Result) trace.Opt[float64] {
			mean := l.Metric(run.Mean).Value(r)
			mean.Value /= 1000
			return mean
		}
	}
	e2el, ttft, tpot := seconds(run.E2EL), seconds(run.TTFT), seconds(run.TPOT)
	perUser := func(r *run.Result) trace.Opt[float64] {
		seconds := tpot(r)
		return trace.Opt[float64]{Value: 1 / seconds.Value, Set: seconds.Set && seconds.Value > 0}
	}
	time := func(label string) figure.Axis { return figure.Axis{Label: label, Quantity: figure.Duration} }
	return figure.Sheet{
		Title: "Throughput against latency",
		Note:  s.figureNote(),
		Rows: []figure.Row{
			{Figures: []figure.Figure{s.figure(time("Mean E2E latency"), e2el), s.figure(time("Mean TTFT"), ttft)}},
			{Figures: []figure.Figure{s.figure(time("Mean TPOT"), tpot), s.figure(figure.Axis{Label: "Per-user output", Unit: "tok/s"}, perUser)}},
		},
	}
}

func (s Sweep) figure(x figure.Axis, value func(r *run.Result) trace.Opt[float64]) figure.Figure {
	f := figure.Figure{
		Title: x.Label, X: x,
		Y: figure.Axis{Label: "Output throughput", Unit: "tok/s"},
	}
	low, high := 0.0, 0.0
	for _, d := range s.Deployments {
		series := figure.Series{Name: doc.Clean(d.Label), Kind: figure.Line}
		for _, p := range d.Points {
			at, throughput := value(p.Result), p.Result.OutputRate
			if !at.Set || !throughput.Set {
				continue
			}
			if low == 0 || at.Value < low {
				low = at.Value
			}
			high = max(high, at.Value)
			series.X = append(series.X, at.Value)
			series.Y = append(series.Y, throughput.Value)
			series.Labels = append(series.Labels, doc.Clean(p.mark()))
		}
		f.Series = append(f.Series, series)
	}
	// On a linear axis, widely spread latencies would crowd the small ones into a corner.
	if f.X.Log = low > 0 && high > 20*low; !f.X.Log {
		f.X.Min = new(float64)
	}
	return f
}

func (s Sweep) figureNote() string {
	note := doc.Clean(s.Subject) + "; dots are labelled with the " + strings.ToLower(s.Axis)
	for _, d := range s.Deployments {
		for _, p := range d.Points {
			if p.mark() != p.Level {
				return note + "; " + notValid + " is not VALID"
			}
		}
	}
	return note
}
