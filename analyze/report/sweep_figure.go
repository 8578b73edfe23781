package report

import (
	"io"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/replay/bench"
	"moontide/trace"
)

// PNG draws throughput against latency: a line per deployment, a dot per run.
func (s Sweep) PNG(w io.Writer) error {
	return figure.WritePNG(w, s.sheet(), figure.Options{})
}

// addSheet adds the figures of a picture to a page, under its title.
func addSheet(d *doc.Document, sheet figure.Sheet) {
	s := d.DetailSection(sheet.Title)
	for _, row := range sheet.Rows {
		for _, f := range row.Figures {
			s.Figure(f)
		}
	}
}

func (s Sweep) sheet() figure.Sheet {
	seconds := func(l run.Latency) ofResult {
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
	against := func(x figure.Axis, value ofResult) figure.Figure {
		return s.figure(x.Label, x, figure.Axis{Label: "Output throughput", Unit: "tok/s"}, value, func(r *run.Result) trace.Opt[float64] { return r.OutputRate })
	}
	sheet := figure.Sheet{
		Title: "Throughput against latency",
		Note:  s.figureNote(),
		Rows: []figure.Row{
			{Figures: []figure.Figure{against(time("Mean E2E latency"), e2el), against(time("Mean TTFT"), ttft)}},
			{Figures: []figure.Figure{against(time("Mean TPOT"), tpot), against(figure.Axis{Label: "Per-user output", Unit: "tok/s"}, perUser)}},
		},
	}
	if s.Axis != bench.Concurrency { // what was asked for may differ from what was sent
		load := figure.Axis{Label: "Achieved request rate", Unit: "req/s"}
		rate := func(r *run.Result) trace.Opt[float64] { return r.AchievedRate }
		sheet.Rows = append(sheet.Rows, figure.Row{Figures: []figure.Figure{
			s.figure("Mean TTFT by load", load, time("Mean TTFT"), rate, ttft), s.figure("Mean TPOT by load", load, time("Mean TPOT"), rate, tpot),
		}})
	}
	return sheet
}

// ofResult is a value of a run.
type ofResult func(r *run.Result) trace.Opt[float64]

// figure draws y against x.
func (s Sweep) figure(title string, x, y figure.Axis, xOf, yOf ofResult) figure.Figure {
	f := figure.Figure{Title: title, X: x, Y: y}
	low, high := 0.0, 0.0
	for _, d := range s.Deployments {
		series := figure.Series{Name: doc.Clean(d.name()), Kind: figure.Line}
		for _, p := range d.Points {
			x, y := xOf(p.Result), yOf(p.Result)
			if !x.Set || !y.Set {
				continue
			}
			if low == 0 || x.Value < low {
				low = x.Value
			}
			high = max(high, x.Value)
			series.X = append(series.X, x.Value)
			series.Y = append(series.Y, y.Value)
			series.Labels = append(series.Labels, doc.Clean(p.mark()))
		}
		f.Series = append(f.Series, series)
	}
	// On a linear axis, widely spread values would crowd the small ones into a corner.
	if f.X.Log = low > 0 && high > 20*low; !f.X.Log {
		f.X.Min = new(float64)
	}
	return f
}

func (s Sweep) figureNote() string {
	note := doc.Clean(s.Subject) + "; dots are labelled with the " + strings.ToLower(s.heading())
	for _, d := range s.Deployments {
		for _, p := range d.Points {
			if p.mark() != p.Level {
				return note + "; " + notValid + " is not VALID"
			}
		}
	}
	return note
}
