package report_test

import (
	"strings"
	"testing"

	"moontide/analyze/report"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
)

// fittedEngine returns a fit of four measurements, one of them excluded.
func fittedEngine() report.EngineFit {
	row := func(name string, scale, miss float64) fit.Row {
		r := fit.Row{Measurement: fit.Measurement{Name: name, Values: fit.Values{}}, Predicted: fit.Values{}, HeldOut: []fit.Values{{}}}
		for i, m := range fit.Metrics {
			r.Values[m] = scale * float64(10+i*7)
			r.Predicted[m], r.HeldOut[0][m] = r.Values[m]*(1+miss), r.Values[m]*(1-miss)
		}
		return r
	}
	stalled := fit.Row{Measurement: fit.Measurement{Name: "line 5"}, Findings: []string{"Little's law: throughput x E2EL is 0.42 of the concurrency; at least 0.8"}}
	return report.EngineFit{Subject: "runs of a server", Result: &fit.Result{
		Deployment: engine.Default(),
		Estimates: []fit.Estimate{
			{Name: "step-base", Value: 12_345 * engine.Microsecond, Low: 12_100 * engine.Microsecond, High: 12_600 * engine.Microsecond},
			{Name: "prefill-step", Value: 30 * engine.Nanosecond, Low: 0, High: 90 * engine.Nanosecond},
		},
		Rows:   []fit.Row{row("line 2", 1, 0.01), row("line 3", 20, -0.02), row("line 4", 6, 0.15), stalled},
		Errors: []fit.Error{{Metric: fit.MeanTTFT, Predictions: 3, Median: 0.015, P90: 0.019, Max: 0.02}},
		Fitted: fit.Fitted{
			HeldOut: []fit.Error{{Metric: fit.MeanTTFT, Predictions: 6, Median: 0.15, P90: 0.152, Max: 0.153}},
			Range:   fit.Range{ISL: fit.Interval{Low: 64, High: 3000}, OSL: fit.Interval{Low: 150, High: 150}, Concurrency: fit.Interval{Low: 1, High: 128}},
		},
	}}
}

// The report names each parameter with its range and unit, what is not identified, the
// errors of held-out measurements, and what was screened out and why.
func TestEngineFitReport(t *testing.T) {
	f := fittedEngine()
	text := written(t, f.Document().WriteText)
	for _, want := range []string{
		"step-base", "12.3 ms", "12.1 ms", "12.6 ms", "90 ns", "not identified", "Mean TTFT (ms)", "15.2", "line 5 (excluded): Little's law", "0.42 of the", "64 to 3,000", "10 per slot",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if lines := strings.Count(written(t, f.Document().WriteCSV), "\n"); lines != 1+3*len(fit.Metrics) {
		t.Errorf("%d lines of CSV", lines)
	}
	if n := strings.Count(written(t, f.Document().WriteHTML), "Predicted"); n < 5 {
		t.Errorf("%d figures on the page", n)
	}
	refused := written(t, report.EngineFit{Subject: "a table", Refused: true, Result: &fit.Result{Rows: f.Rows}}.Document().WriteText)
	if !strings.Contains(refused, "line 5 (excluded): Little's law") {
		t.Error(refused)
	}
}
