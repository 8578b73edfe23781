package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/slo"
	"moontide/trace/stats"
)

// distributions are the latencies of figures, and what each is a latency of.
var distributions = []struct {
	latency   measure.Latency
	title, of string
}{
	{measure.TTFT, "Time to first token", "Requests"}, {measure.TPOT, "Time per output token", "Requests"},
	{measure.ITL, "Inter-token latency", "Tokens"}, {measure.E2EL, "End-to-end latency", "Requests"},
}

// addDistributions draws the latencies with their objectives.
func (r Run) addDistributions(s *doc.Section) {
	for _, of := range distributions {
		if d := r.Result.Latency(of.latency); d.Count > 0 {
			f := histogram(of.title, figure.Axis{Label: of.latency.Label(), Quantity: figure.Duration}, of.of, d)
			f.Marks = append(f.Marks, Runs{r}.limits(of.latency)...)
			s.Figures(f)
		}
	}
}

// limits marks the objectives of a latency that are near the drawn values.
func (runs Runs) limits(l measure.Latency) (marks []figure.Mark) {
	const far = 2
	over := extentOf(runs.samples(l)...)
	add := func(label string, ms float64) {
		m := figure.Mark{Label: label + " " + doc.Duration(ms), At: ms / 1000, Limit: true}
		if ms > 0 && ms <= far*over.high && (!over.log || ms >= over.low/far) && !slices.Contains(marks, m) {
			marks = append(marks, m)
		}
	}
	for _, r := range runs {
		for _, g := range r.View.Gates {
			if g.Metric.Latency == l && g.Kind == slo.OfValue {
				add("SLO "+g.Metric.Statistic.Label(), g.Limit)
			}
		}
		if g := r.Result.Goodput; g != nil {
			for _, o := range g.Objectives {
				if o.Latency == l {
					add("objective", o.LimitMS)
				}
			}
		}
	}
	return marks
}

// samples returns a latency of each run.
func (runs Runs) samples(l measure.Latency) (all []stats.Sample) {
	for _, r := range runs {
		all = append(all, r.Result.Latency(l))
	}
	return all
}

func (runs Runs) names() (all []string) {
	for _, r := range runs {
		all = append(all, r.name())
	}
	return all
}

// overlays draws the latencies of all runs in one figure each.
func (runs Runs) overlays() (all []figure.Figure) {
	for _, of := range distributions {
		f := overlay(of.title, figure.Axis{Label: of.latency.Label(), Quantity: figure.Duration}, of.of+" of at most this time",
			runs.names(), runs.samples(of.latency))
		f.Marks = runs.limits(of.latency)
		if drawn(f) > 0 {
			all = append(all, f)
		}
	}
	return all
}

func (r Run) addFigures(d *doc.Document) {
	if r.Result.Detail == nil {
		return
	}
	if series := r.Result.Detail.Series; len(series.Intervals) > 1 {
		s := d.Section("Over time")
		s.PageOnly = true
		for _, over := range overTime {
			f := figure.Figure{Title: over.title, Note: fmt.Sprintf("each value covers %v", series.Step), X: figure.Axis{Label: "Time", Quantity: figure.Duration}, Y: over.y}
			for _, line := range over.lines {
				f.Series = append(f.Series, line.of(series))
			}
			s.Figures(f)
		}
	}
}

// overTime lists the figures over time.
var overTime = []timeFigure{
	{"Output token throughput", figure.Axis{Label: "Tokens", Unit: "tok/s"}, []timeLine{
		{"", false, func(at *measure.Interval, step float64) float64 { return at.Output / step }},
	}},
	{"Requests in flight", figure.Axis{Label: "Requests"}, []timeLine{
		{"mean", false, func(at *measure.Interval, _ float64) float64 { return at.InFlight }},
		{"max", true, func(at *measure.Interval, _ float64) float64 { return float64(at.MaxInFlight) }},
	}},
	{"Time to first token over time", figure.Axis{Label: "TTFT", Quantity: figure.Duration}, []timeLine{
		{"p99", false, quantileLine(0.99, ttftOf)}, {"median", false, quantileLine(0.5, ttftOf)}, {"max", true, quantileLine(1, ttftOf)},
	}},
	{"Request rate", figure.Axis{Label: "Requests", Unit: "req/s"}, []timeLine{
		{"completed", false, func(at *measure.Interval, step float64) float64 { return float64(at.Completed) / step }},
		{"due", true, func(at *measure.Interval, step float64) float64 { return float64(at.Due) / step }},
		{"sent", false, func(at *measure.Interval, step float64) float64 { return float64(at.Sent) / step }},
		{"failed", false, func(at *measure.Interval, step float64) float64 { return float64(at.Failed) / step }},
	}},
	{"Lag", figure.Axis{Label: "Lag, p99", Quantity: figure.Duration}, []timeLine{
		{"client lag", false, quantileLine(0.99, func(at *measure.Interval) stats.Sample { return at.ClientLag })},
		{"schedule lag", false, quantileLine(0.99, func(at *measure.Interval) stats.Sample { return at.ScheduleLag })},
	}},
}

type timeFigure struct {
	title string
	y     figure.Axis
	lines []timeLine
}

// timeLine has one value per interval, NaN for none.
type timeLine struct {
	name   string
	dashed bool
	value  func(at *measure.Interval, step float64) float64
}

func (l timeLine) of(series measure.Series) figure.Series {
	s := figure.Series{Name: l.name, Kind: figure.Line, Dashed: l.dashed}
	for i := range series.Intervals {
		at := series.From + time.Duration(i)*series.Step + series.Step/2
		s.Add(at.Seconds(), l.value(&series.Intervals[i], series.Step.Seconds()), "")
	}
	return s
}

func ttftOf(at *measure.Interval) stats.Sample { return at.TTFT }

func quantileLine(p float64, of func(at *measure.Interval) stats.Sample) func(at *measure.Interval, _ float64) float64 {
	return func(at *measure.Interval, _ float64) float64 {
		d := of(at)
		if d.Count == 0 {
			return math.NaN()
		}
		return d.Quantile(p) / 1000
	}
}

// Series returns a document whose Data has a row per interval. Rates are per second,
// latencies in milliseconds. The result must have been computed with Options.Detail.
func Series(s measure.Series) *doc.Document {
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
