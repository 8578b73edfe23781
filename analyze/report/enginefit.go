package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
)

// EngineFit is a fitted engine.
type EngineFit struct {
	Subject string // what was measured
	*fit.Result
	// Refused is set if the measurements contradict themselves: of the result, there
	// are only the rows.
	Refused bool
}

// Document contains the estimates with intervals, the errors of the prediction, the
// screened measurements and the fitted range, with figures of measured against
// predicted. Its Data has one row per measurement and metric. Of a refused fit it
// contains the reasons.
func (f EngineFit) Document() *doc.Document {
	if f.Refused {
		d := doc.New("ENGINE FIT: REFUSED", f.Subject)
		d.Section("").Text("The measurements are inconsistent, so no engine was fitted.")
		f.screened(d)
		return d
	}
	d := doc.New("ENGINE FIT", f.Subject)
	d.Headlines = f.headlines()
	f.estimates(d.Section("Parameters, with 95 % intervals"))
	f.errors(d.Section("Errors of the prediction, in percent"))
	f.screened(d)
	f.ranges(d.Section("Fitted range"))
	f.structures(d)
	s := d.DetailSection("Measured against predicted")
	for _, figure := range f.figures() {
		s.Figure(figure)
	}
	f.rows(d.Section("Each measurement, with the error of the prediction in percent"))
	for _, note := range f.Notes {
		d.Note("Note", note)
	}
	d.Data = f.data()
	return d
}

// costText formats a time with three significant digits in a suitable unit.
func costText(c engine.Cost) string {
	for _, unit := range []struct {
		name string
		cost engine.Cost
	}{{"s", engine.Second}, {"ms", engine.Millisecond}, {"us", engine.Microsecond}, {"ns", engine.Nanosecond}} {
		if v := c.In(unit.cost); v >= 1 {
			return doc.Fixed(v, max(0, 2-int(math.Log10(v)))) + " " + unit.name
		}
	}
	return fmt.Sprintf("%d ps", c)
}

func (f EngineFit) estimates(s *doc.Section) {
	t := doc.Table{Columns: []string{"parameter", "estimate", "low", "high", ""}, Left: 1}
	unidentified := 0
	for _, e := range f.Estimates {
		remark := ""
		switch {
		case !e.Fitted:
			t.Add(e.Name, costText(e.Value), "", "", "kept")
			continue
		case !e.Identified:
			unidentified++
			remark = "not identified"
		}
		t.Add(e.Name, costText(e.Value), costText(e.Low), costText(e.High), remark)
	}
	s.Table(t)
	if unidentified > 0 {
		s.Warn("The measurements hardly depend on " + doc.Count(unidentified, "parameter") +
			" marked \"not identified\"; predictions for loads that depend on them may be wrong.")
	}
	s.Row("Unexplained", doc.Fixed(100*f.Noise, 1), "%", "standard deviation of measured over predicted")
}

// errorColumns returns the cells of the errors with one role.
func (f EngineFit) errorCells(m fit.Metric, role fit.Role) []string {
	for _, e := range f.Errors {
		if e.Metric == m && e.Role == role && e.Rows > 0 {
			return []string{doc.Int(e.Rows), doc.Fixed(100*e.Median, 1), doc.Fixed(100*e.P90, 1), doc.Fixed(100*e.Max, 1)}
		}
	}
	return []string{"0", doc.Absent, doc.Absent, doc.Absent}
}

func (f EngineFit) errors(s *doc.Section) {
	t := doc.Table{Columns: []string{"metric", "fitted", "median", "p90", "max", "held out", "median", "p90", "max"}, Left: 1}
	for _, m := range fit.Metrics() {
		if cells := slices.Concat(f.errorCells(m, fit.Fitted), f.errorCells(m, fit.HeldOut)); cells[0] != "0" || cells[4] != "0" {
			t.Add(append([]string{metricLabel(m)}, cells...)...)
		}
	}
	s.Table(t)
	if !slices.ContainsFunc(f.Rows, func(r fit.Row) bool { return r.Role == fit.HeldOut }) {
		s.Warn("No measurement was held out, so the errors above are those of the fit itself.")
	}
}

// metricLabel returns the metric's heading in reports of runs.
func metricLabel(m fit.Metric) string { return run.MustMetric(m.String()).Heading() }

func (f EngineFit) screened(d *doc.Document) {
	s := &doc.Section{Title: "Screening of the measurements"}
	for _, r := range f.Rows {
		var reasons []string
		for _, finding := range r.Findings {
			reasons = append(reasons, finding.Kind+": "+finding.Reason)
		}
		if reasons != nil {
			s.Text(fmt.Sprintf("%s (%s): %s.", r.Name, r.Role, strings.TrimSuffix(strings.Join(reasons, "; "), ".")))
		}
	}
	if s.Blocks != nil {
		d.Sections = append(d.Sections, s)
	}
}

func (f EngineFit) ranges(s *doc.Section) {
	for _, r := range []struct {
		name, unit string
		fit.Interval
	}{{"ISL", "tokens", f.Range.ISL}, {"OSL", "tokens", f.Range.OSL}, {"Concurrency", "requests in flight", f.Range.Concurrency}, {"Running sequences", "per engine", f.Range.Running}} {
		switch {
		case r.High == 0:
		case r.Low == r.High:
			s.Row(r.name, doc.Int(r.High), r.unit, "")
		default:
			s.Row(r.name, doc.Int(r.Low)+" to "+doc.Int(r.High), r.unit, "")
		}
	}
}

func (f EngineFit) structures(d *doc.Document) {
	if len(f.Structures) < 2 {
		return
	}
	t := doc.Table{Columns: []string{"structure", "loss", ""}, Left: 1}
	for i, st := range f.Structures {
		t.Add(st.Name, doc.Fixed(st.Loss, 3), []string{"used", ""}[min(i, 1)])
	}
	d.Section("Structures compared").Table(t)
}

// shownErrors are the metrics in the table of measurements.
var shownErrors = []fit.Metric{fit.OutputThroughput, fit.MeanE2EL, fit.MeanTTFT, fit.MeanTPOT}

func (f EngineFit) rows(s *doc.Section) {
	t := doc.Table{Columns: []string{"measurement", "load", "use", "tok/s", "E2EL", "TTFT", "TPOT"}, Left: 3}
	for _, r := range f.Rows {
		cells := []string{r.Name, r.Load.String(), string(r.Role)}
		for _, m := range shownErrors {
			cell := doc.Absent
			if e, ok := r.Error(m); ok {
				cell = fmt.Sprintf("%+.1f", 100*e)
			}
			cells = append(cells, cell)
		}
		t.Add(cells...)
	}
	s.Table(t)
}

func (f EngineFit) data() (data doc.Data) {
	data.Columns = []string{"measurement", "role", "metric", "measured", "predicted", "error"}
	for _, r := range f.Rows {
		for _, m := range fit.Metrics() {
			if e, ok := r.Error(m); ok {
				data.Add(r.Name, string(r.Role), m.String(), r.Values[m], r.Predicted[m], e)
			}
		}
	}
	return data
}

// shownMetrics are the metrics that have a figure, with their axes: latencies in
// seconds.
var shownMetrics = []struct {
	metric fit.Metric
	scale  float64
	axis   figure.Axis
}{
	{fit.OutputThroughput, 1, figure.Axis{Unit: "tok/s"}},
	{fit.MeanE2EL, 1e-3, figure.Axis{Quantity: figure.Duration}},
	{fit.MeanTTFT, 1e-3, figure.Axis{Quantity: figure.Duration}},
	{fit.MeanTPOT, 1e-3, figure.Axis{Quantity: figure.Duration}},
	{fit.P99TTFT, 1e-3, figure.Axis{Quantity: figure.Duration}},
	{fit.P99E2EL, 1e-3, figure.Axis{Quantity: figure.Duration}},
}

func (f EngineFit) figures() (all []figure.Figure) {
	for _, shown := range shownMetrics {
		low, high := math.Inf(1), 0.0
		plot := figure.Figure{Title: run.MustMetric(shown.metric.String()).Label, X: shown.axis, Y: shown.axis}
		plot.X.Label, plot.Y.Label = "Measured", "Predicted"
		for _, role := range []fit.Role{fit.Fitted, fit.HeldOut} {
			dots := figure.Series{Name: string(role), Kind: figure.Points}
			for _, r := range f.Rows {
				if _, ok := r.Error(shown.metric); r.Role != role || !ok {
					continue
				}
				x, y := shown.scale*r.Values[shown.metric], shown.scale*r.Predicted[shown.metric]
				low, high = min(low, x, y), max(high, x, y)
				dots.X, dots.Y, dots.Labels = append(dots.X, x), append(dots.Y, y), append(dots.Labels, doc.Clean(r.Name+": "+r.Load.String()))
			}
			plot.Series = append(plot.Series, dots)
		}
		if high == 0 {
			continue
		}
		low, high = low/1.2, high*1.2
		plot.X.Log, plot.X.Min, plot.X.Max = true, &low, &high
		plot.Y.Log, plot.Y.Min, plot.Y.Max = true, &low, &high
		// The line begins outside the frame, so that its ends get no dots.
		plot.Series = append(plot.Series, figure.Series{Name: "equal", Kind: figure.Line, Dashed: true, X: []float64{low / 2, high * 2}, Y: []float64{low / 2, high * 2}})
		all = append(all, plot)
	}
	return all
}

// EngineFitJSON is a fit in JSON.
type EngineFitJSON struct {
	Subject    string               `json:"subject"`
	Refused    bool                 `json:"refused"`    // the measurements contradict themselves: nothing was fitted
	Deployment string               `json:"deployment"` // in words
	Estimates  []EngineEstimateJSON `json:"estimates"`
	Errors     []EngineErrorJSON    `json:"errors"`
	Rows       []EngineRowJSON      `json:"measurements"`
	Notes      []string             `json:"notes"`
}

// EngineEstimateJSON is a parameter of a fitted engine.
type EngineEstimateJSON struct {
	Name       string `json:"name"`
	Value      string `json:"value"` // with its unit
	Low        string `json:"low"`   // of the 95 % interval
	High       string `json:"high"`
	Identified bool   `json:"identified"` // the measurements depend on it
	Fitted     bool   `json:"fitted"`     // else it kept its value
}

// EngineErrorJSON summarises the errors of the prediction of a metric, as shares of the
// measured values.
type EngineErrorJSON struct {
	Metric string   `json:"metric"`
	Role   fit.Role `json:"role"`
	Rows   int      `json:"rows"`
	Median float64  `json:"median"`
	P90    float64  `json:"p90"`
	Max    float64  `json:"max"`
}

// EngineRowJSON is a measurement beside its prediction.
type EngineRowJSON struct {
	Name      string              `json:"name"`
	Role      fit.Role            `json:"role"`
	Findings  []EngineFindingJSON `json:"findings"` // of the screening
	Measured  map[string]float64  `json:"measured"` // by metric
	Predicted map[string]float64  `json:"predicted"`
}

// EngineFindingJSON is a contradiction in a measurement.
type EngineFindingJSON struct {
	Kind     string `json:"kind"`
	Reason   string `json:"reason"`
	Excludes bool   `json:"excludes"` // the measurement from the fit
}

// JSON writes the fit as one indented JSON object.
func (f EngineFit) JSON(w io.Writer) error {
	out := EngineFitJSON{Subject: f.Subject, Refused: f.Refused, Deployment: f.Deployment.String(), Notes: slices.Concat([]string{}, f.Notes), Errors: []EngineErrorJSON{}}
	for _, e := range f.Estimates {
		out.Estimates = append(out.Estimates, EngineEstimateJSON{e.Name, e.Value.String(), e.Low.String(), e.High.String(), e.Identified, e.Fitted})
	}
	for _, e := range f.Errors {
		out.Errors = append(out.Errors, EngineErrorJSON{e.Metric.String(), e.Role, e.Rows, e.Median, e.P90, e.Max})
	}
	for _, r := range f.Rows {
		row := EngineRowJSON{Name: r.Name, Role: r.Role, Findings: []EngineFindingJSON{}, Measured: metricValues(r.Values), Predicted: metricValues(r.Predicted)}
		for _, finding := range r.Findings {
			row.Findings = append(row.Findings, EngineFindingJSON{finding.Kind, finding.Reason, finding.Excludes})
		}
		out.Rows = append(out.Rows, row)
	}
	return writeJSON(w, out)
}

func metricValues(values fit.Values) map[string]float64 {
	all := map[string]float64{}
	for _, m := range fit.Metrics() {
		if v := values[m]; v != 0 {
			all[m.String()] = v
		}
	}
	return all
}

// EngineFitLine returns the held-out errors of a fit as one line.
func EngineFitLine(f *fit.Result) string {
	var parts []string
	for _, e := range f.Errors {
		if e.Role == fit.HeldOut && e.Rows > 0 && slices.Contains(shownErrors, e.Metric) {
			parts = append(parts, run.MustMetric(e.Metric.String()).Label+" "+strconv.FormatFloat(100*e.Median, 'f', 1, 64)+" %")
		}
	}
	if parts == nil {
		return "no measurement was held out"
	}
	return "median error of held-out measurements: " + strings.Join(parts, ", ")
}
