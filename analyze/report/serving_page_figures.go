package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/replay"
	"moontide/trace/stats"
)

func (s *servingPage) distributions() {
	s.begin("Distributions")
	drawn := 0
	for _, of := range []struct {
		metric       run.Latency
		title, count string
	}{
		{run.TTFT, "Time to first token", "Requests"},
		{run.TPOT, "Time per output token", "Requests"},
		{run.ITL, "Inter-token latency", "Tokens"},
		{run.E2EL, "End-to-end latency", "Requests"},
	} {
		if d := s.Result.Latency(of.metric); d.Count > 0 {
			s.figure(density(of.title, of.count, d, ServingRuns{s.ServingRun}.rangeOf(of.metric)))
			drawn++
		}
	}
	if drawn == 0 {
		s.paragraph("No request was answered, so there is none.")
	}
}

// overTime draws the stretches of the run.
func (s *servingPage) overTime() {
	if s.Result.Detail == nil || len(s.Result.Detail.Series.Stretches) < 2 {
		return
	}
	series := s.Result.Detail.Series
	s.begin("Over time")
	s.paragraph(fmt.Sprintf("Each value is of a stretch of %v.", series.Step))
	step := series.Step.Seconds()
	rate := func(n func(at *run.Stretch) int) func(at *run.Stretch) float64 {
		return func(at *run.Stretch) float64 { return float64(n(at)) / step }
	}
	requests := []stretchLine{
		{"due", true, rate(func(at *run.Stretch) int { return at.Due })},
		{"sent", false, rate(func(at *run.Stretch) int { return at.Sent })},
		{"completed", false, rate(func(at *run.Stretch) int { return at.Completed })},
	}
	if slices.ContainsFunc(series.Stretches, func(at run.Stretch) bool { return at.Failed > 0 }) {
		requests = append(requests, stretchLine{"failed", false, rate(func(at *run.Stretch) int { return at.Failed })})
	}
	s.figure(stretched(series, "Requests", figure.Axis{Label: "Requests", Unit: "req/s"}, requests))
	s.figure(stretched(series, "Output token throughput", figure.Axis{Label: "Tokens", Unit: "tok/s"}, []stretchLine{
		{"", false, func(at *run.Stretch) float64 { return at.Output / step }},
	}))
	s.figure(stretched(series, "Requests in flight", figure.Axis{Label: "Requests"}, []stretchLine{
		{"mean", false, func(at *run.Stretch) float64 { return at.InFlight }},
		{"most at once", true, func(at *run.Stretch) float64 { return float64(at.MostInFlight) }},
	}))
	s.figure(stretched(series, "Time to first token", figure.Axis{Label: "TTFT", Quantity: figure.Duration}, []stretchLine{
		{"median", false, quantileLine(0.5, func(at *run.Stretch) stats.Sample { return at.TTFT })},
		{"p99", false, quantileLine(0.99, func(at *run.Stretch) stats.Sample { return at.TTFT })},
		{"largest", true, quantileLine(1, func(at *run.Stretch) stats.Sample { return at.TTFT })},
	}))
	if s.Result.ScheduleLag.Max == 0 { // as in virtual time
		return
	}
	s.figure(stretched(series, "Lag at p99", figure.Axis{Label: "Lag", Quantity: figure.Duration}, []stretchLine{
		{"schedule lag", false, quantileLine(0.99, func(at *run.Stretch) stats.Sample { return at.ScheduleLag })},
		{"client lag", false, quantileLine(0.99, func(at *run.Stretch) stats.Sample { return at.ClientLag })},
	}))
}

// stretchLine is a value of each stretch. NaN is none.
type stretchLine struct {
	name   string
	dashed bool
	of     func(at *run.Stretch) float64
}

// quantileLine is a quantile in seconds.
func quantileLine(p float64, of func(at *run.Stretch) stats.Sample) func(at *run.Stretch) float64 {
	return func(at *run.Stretch) float64 {
		d := of(at)
		if d.Count == 0 {
			return math.NaN()
		}
		return d.Quantile(p) / 1000
	}
}

func stretched(series run.Series, title string, y figure.Axis, lines []stretchLine) figure.Figure {
	f := figure.Figure{Title: title, X: figure.Axis{Label: "Time", Quantity: figure.Duration}, Y: y}
	for _, line := range lines {
		drawn := figure.Series{Name: line.name, Kind: figure.Line, Dashed: line.dashed}
		for i := range series.Stretches {
			at := series.From + time.Duration(i)*series.Step + series.Step/2
			drawn.X = append(drawn.X, at.Seconds())
			drawn.Y = append(drawn.Y, line.of(&series.Stretches[i]))
		}
		f.Series = append(f.Series, drawn)
	}
	return f
}

// timeline draws the requests: when each waited and when it was answered, and
// how long they took.
func (s *servingPage) timeline() {
	if s.Result.Detail == nil || len(s.Result.Detail.Requests) == 0 {
		return
	}
	requests := s.Result.Detail.Requests
	s.begin("Requests")
	s.figure(bars(requests))
	s.figure(dots(requests, "TTFT by the time of sending", "TTFT", func(q *run.Request) time.Duration { return q.First - q.Sent }))
	s.figure(dots(requests, "E2EL by the time of sending", "E2EL", func(q *run.Request) time.Duration { return q.Last - q.Sent }))
	s.figure(isl(requests))
}

// mostBars is how many requests a timeline shows: more lie on each other.
const mostBars = 400

// bars draws a line for each request from its sending to its first token, and on
// to its end. Of many requests that follow each other the one that took longest
// stands for all.
func bars(requests []run.Request) figure.Figure {
	waiting := figure.Series{Name: "to the first token", Kind: figure.Line}
	answering := figure.Series{Name: "to the last", Kind: figure.Line}
	failed := figure.Series{Name: "failed", Kind: figure.Line, Dashed: true}
	line := func(to *figure.Series, row int, from, end time.Duration) {
		to.X = append(to.X, from.Seconds(), end.Seconds(), math.NaN())
		to.Y = append(to.Y, float64(row), float64(row), math.NaN())
	}
	each := (len(requests) + mostBars - 1) / mostBars
	for begin := 0; begin < len(requests); begin += each {
		q := longest(requests[begin:min(begin+each, len(requests))])
		switch {
		case q == nil:
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
	for _, series := range []figure.Series{waiting, answering, failed} {
		if len(series.X) > 0 {
			f.Series = append(f.Series, series)
		}
	}
	if each > 1 {
		f.Note = fmt.Sprintf("the longest of every %d requests", each)
	}
	return f
}

// longest is the request that took longest, nil where none was sent.
func longest(requests []run.Request) (most *run.Request) {
	for i := range requests {
		if q := &requests[i]; q.WasSent && (most == nil || q.End-q.Sent > most.End-most.Sent) {
			most = q
		}
	}
	return most
}

// dots draws a duration of each answered request.
func dots(requests []run.Request, title, label string, of func(q *run.Request) time.Duration) figure.Figure {
	series := scatter(label, len(requests))
	for i := range requests {
		if q := &requests[i]; q.Answered && q.Class == replay.OK {
			series.X = append(series.X, q.Sent.Seconds())
			series.Y = append(series.Y, of(q).Seconds())
		}
	}
	return figure.Figure{
		Title: title, NoLegend: true,
		X:      figure.Axis{Label: "Time", Quantity: figure.Duration},
		Y:      figure.Axis{Label: label, Quantity: figure.Duration},
		Series: []figure.Series{series},
	}
}

// scatter is room for as many points.
func scatter(name string, points int) figure.Series {
	return figure.Series{Name: name, Kind: figure.Points, X: make([]float64, 0, points), Y: make([]float64, 0, points)}
}

// isl draws TTFT against the length of the prompt.
func isl(requests []run.Request) figure.Figure {
	series := scatter("TTFT", len(requests))
	for i := range requests {
		if q := &requests[i]; q.Answered && q.Class == replay.OK {
			series.X = append(series.X, float64(q.ISL))
			series.Y = append(series.Y, (q.First - q.Sent).Seconds())
		}
	}
	return figure.Figure{
		Title: "TTFT by ISL", NoLegend: true,
		X:      figure.Axis{Label: "ISL", Unit: "tokens"},
		Y:      figure.Axis{Label: "TTFT", Quantity: figure.Duration},
		Series: []figure.Series{series},
	}
}

// predictionFigure draws, for each request, what was cached against what was
// predicted.
func predictionFigure(p *run.Prediction) (figure.Figure, bool) {
	if len(p.Each) == 0 || p.Predicted+p.Measured == 0 {
		return figure.Figure{}, false
	}
	series := scatter("requests", len(p.Each))
	most := 0
	for _, e := range p.Each {
		series.X = append(series.X, float64(e.Predicted))
		series.Y = append(series.Y, float64(e.Measured))
		most = max(most, e.Predicted, e.Measured)
	}
	return figure.Figure{
		Title: "Cached prompt tokens of each request",
		X:     figure.Axis{Label: "Predicted", Unit: "tokens"},
		Y:     figure.Axis{Label: "Measured", Unit: "tokens"},
		Series: []figure.Series{
			series,
			{Name: "as predicted", Kind: figure.Line, Dashed: true, X: []float64{0, float64(most)}, Y: []float64{0, float64(most)}},
		},
	}, true
}
