package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/replay"
	"moontide/trace/stats"
)

func (r Run) addDistributions(s *doc.Section) {
	for _, c := range runDistributions {
		if of := r.Result.Latency(c.latency); of.Count > 0 {
			s.Figure(c.distribution(Runs{r}, 0))
		}
	}
}

func (r Run) addFigures(d *doc.Document) {
	if r.Result.Detail == nil {
		return
	}
	if series := r.Result.Detail.Series; len(series.Intervals) > 1 {
		s := d.Section("Over time")
		s.PageOnly = true
		for _, f := range seriesFigures(series, r.Result.ScheduleLag.Max > 0) {
			f.Note = fmt.Sprintf("each value covers %v", series.Step)
			s.Figure(f)
		}
	}
	if requests := r.Result.Detail.Requests; len(requests) > 0 {
		s := d.Section("Requests")
		s.PageOnly = true
		s.Figure(timeline(requests))
		sent := func(q *run.Request) float64 { return q.Sent.Seconds() }
		ttft := func(q *run.Request) float64 { return (q.First - q.Sent).Seconds() }
		e2el := func(q *run.Request) float64 { return (q.Last - q.Sent).Seconds() }
		isl := func(q *run.Request) float64 { return float64(q.ISL) }
		time := figure.Axis{Label: "Time", Quantity: figure.Duration}
		s.Figure(dots(requests, "TTFT by send time", time, sent, "TTFT", ttft))
		s.Figure(dots(requests, "E2EL by send time", time, sent, "E2EL", e2el))
		s.Figure(dots(requests, "TTFT by ISL", figure.Axis{Label: "ISL", Unit: "tokens"}, isl, "TTFT", ttft))
	}
}

func seriesFigures(series run.Series, lag bool) []figure.Figure {
	step := series.Step.Seconds()
	requests := []stretchLine{
		{"due", true, func(at *run.Interval) float64 { return float64(at.Due) / step }},
		{"sent", false, func(at *run.Interval) float64 { return float64(at.Sent) / step }},
		{"completed", false, func(at *run.Interval) float64 { return float64(at.Completed) / step }},
	}
	if slices.ContainsFunc(series.Intervals, func(at run.Interval) bool { return at.Failed > 0 }) {
		requests = append(requests, stretchLine{"failed", false, func(at *run.Interval) float64 { return float64(at.Failed) / step }})
	}
	ttft := func(at *run.Interval) stats.Sample { return at.TTFT }
	figures := []figure.Figure{
		stretched(series, "Requests", figure.Axis{Label: "Requests", Unit: "req/s"}, requests...),
		stretched(series, "Output token throughput", figure.Axis{Label: "Tokens", Unit: "tok/s"},
			stretchLine{"", false, outputRate(series.Step)}),
		stretched(series, "Requests in flight", figure.Axis{Label: "Requests"},
			stretchLine{"mean", false, inFlight},
			stretchLine{"max", true, func(at *run.Interval) float64 { return float64(at.MaxInFlight) }}),
		stretched(series, "Time to first token", figure.Axis{Label: "TTFT", Quantity: figure.Duration},
			stretchLine{"median", false, quantileLine(0.5, ttft)},
			stretchLine{"p99", false, quantileLine(0.99, ttft)},
			stretchLine{"max", true, quantileLine(1, ttft)}),
	}
	if lag { // virtual time has no lag
		figures = append(figures, stretched(series, "Lag at p99", figure.Axis{Label: "Lag", Quantity: figure.Duration},
			stretchLine{"schedule lag", false, quantileLine(0.99, func(at *run.Interval) stats.Sample { return at.ScheduleLag })},
			stretchLine{"client lag", false, quantileLine(0.99, func(at *run.Interval) stats.Sample { return at.ClientLag })}))
	}
	return figures
}

// stretchLine has one value per interval, NaN for none.
type stretchLine struct {
	name   string
	dashed bool
	of     func(at *run.Interval) float64
}

func quantileLine(p float64, of func(at *run.Interval) stats.Sample) func(at *run.Interval) float64 {
	return func(at *run.Interval) float64 {
		d := of(at)
		if d.Count == 0 {
			return math.NaN()
		}
		return d.Quantile(p) / 1000
	}
}

func outputRate(step time.Duration) func(at *run.Interval) float64 {
	return func(at *run.Interval) float64 { return at.Output / step.Seconds() }
}

func inFlight(at *run.Interval) float64 { return at.InFlight }

func stretched(series run.Series, title string, y figure.Axis, lines ...stretchLine) figure.Figure {
	f := figure.Figure{Title: title, X: figure.Axis{Label: "Time", Quantity: figure.Duration}, Y: y}
	for _, line := range lines {
		f.Series = append(f.Series, overSeries(series, line))
	}
	return f
}

func overSeries(series run.Series, line stretchLine) figure.Series {
	drawn := figure.Series{Name: line.name, Kind: figure.Line, Dashed: line.dashed}
	for i := range series.Intervals {
		at := series.From + time.Duration(i)*series.Step + series.Step/2
		drawn.X = append(drawn.X, at.Seconds())
		drawn.Y = append(drawn.Y, line.of(&series.Intervals[i]))
	}
	return drawn
}

// mostBars is the maximum number of requests in a timeline.
const mostBars = 400

// timeline draws a line for each request, or for the longest of several consecutive
// ones.
func timeline(requests []run.Request) figure.Figure {
	waiting := figure.Series{Name: "to the first token", Kind: figure.Line}
	answering := figure.Series{Name: "to the last token", Kind: figure.Line}
	failed := figure.Series{Name: "failed", Kind: figure.Line, Dashed: true}
	abandoned := figure.Series{Name: "abandoned", Kind: figure.Line, Dashed: true}
	line := func(to *figure.Series, row int, from, end time.Duration) {
		to.X = append(to.X, from.Seconds(), end.Seconds(), math.NaN())
		to.Y = append(to.Y, float64(row), float64(row), math.NaN())
	}
	each := (len(requests) + mostBars - 1) / mostBars
	for part := range slices.Chunk(requests, each) {
		switch q := longest(part); {
		case q == nil:
		case q.Class == replay.Abandoned:
			line(&abandoned, q.Row, q.Sent, q.End)
		case q.Class != replay.OK || !q.Answered:
			line(&failed, q.Row, q.Sent, q.End)
		default:
			line(&waiting, q.Row, q.Sent, q.First)
			line(&answering, q.Row, q.First, q.Last)
		}
	}
	f := figure.Figure{
		Title: "Timeline",
		X:     figure.Axis{Label: "Time", Quantity: figure.Duration},
		Y:     figure.Axis{Label: "Row of the trace"},
	}
	f.Series = figure.Drawn(waiting, answering, failed, abandoned)
	if each > 1 {
		f.Note = fmt.Sprintf("the longest of every %d requests", each)
	}
	return f
}

// longest returns the longest request, nil if none was sent.
func longest(requests []run.Request) (most *run.Request) {
	for i := range requests {
		if q := &requests[i]; q.WasSent && (most == nil || q.End-q.Sent > most.End-most.Sent) {
			most = q
		}
	}
	return most
}

func dots(requests []run.Request, title string, xAxis figure.Axis, x func(q *run.Request) float64, label string, y func(q *run.Request) float64) figure.Figure {
	series := scatter(label, len(requests))
	for i := range requests {
		if q := &requests[i]; q.Answered && q.Class == replay.OK {
			series.X = append(series.X, x(q))
			series.Y = append(series.Y, y(q))
		}
	}
	return figure.Figure{
		Title: title, NoLegend: true,
		X:      xAxis,
		Y:      figure.Axis{Label: label, Quantity: figure.Duration},
		Series: []figure.Series{series},
	}
}

func scatter(name string, points int) figure.Series {
	return figure.Series{Name: name, Kind: figure.Points, X: make([]float64, 0, points), Y: make([]float64, 0, points)}
}

// Series returns a document whose Data has a row per interval. Rates are per second,
// latencies in milliseconds. The result must have been computed with Options.Detail.
func Series(s run.Series) *doc.Document {
	d := doc.New("Run over time", "")
	d.Data.Columns = []string{
		"from_s", "to_s", "due", "sent", "completed", "failed", "output_throughput", "mean_in_flight", "max_in_flight",
		"median_ttft_ms", "p99_ttft_ms", "max_ttft_ms", "p99_schedule_lag_ms", "p99_client_lag_ms",
	}
	step := s.Step.Seconds()
	for i, at := range s.Intervals {
		from := s.From.Seconds() + float64(i)*step
		quantile := func(d stats.Sample, p float64) any { return orNull(sixDecimals(d.Quantile(p)), d.Count > 0) }
		d.Data.Add(sixDecimals(from), sixDecimals(from+step), at.Due, at.Sent, at.Completed, at.Failed,
			sixDecimals(at.Output/step), sixDecimals(at.InFlight), at.MaxInFlight,
			quantile(at.TTFT, 0.5), quantile(at.TTFT, 0.99), quantile(at.TTFT, 1),
			quantile(at.ScheduleLag, 0.99), quantile(at.ClientLag, 0.99))
	}
	return d
}

func sixDecimals(x float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', 6, 64), 64)
	return rounded
}
