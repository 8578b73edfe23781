package report_test

import (
	"encoding/json"
	"strings"
	"testing"

	"moontide/analyze/report"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
)

// fittedEngine returns a fit of four measurements: two fitted, one held out, one
// excluded.
func fittedEngine() report.EngineFit {
	row := func(name string, role fit.Role, scale, miss float64) fit.Row {
		r := fit.Row{Measurement: fit.Measurement{Name: name}, Role: role}
		for _, m := range fit.Metrics() {
			r.Values[m] = scale * float64(10+int(m)*7)
			if role != fit.Excluded {
				r.Predicted[m] = r.Values[m] * (1 + miss)
			}
		}
		return r
	}
	stalled := row("line 5", fit.Excluded, 3, 0)
	stalled.Findings = []fit.Finding{{Kind: "Little's law", Reason: "throughput x E2EL is 0.42 of the concurrency; at least 0.8", Excludes: true}}
	return report.EngineFit{Subject: "runs of a server", Result: &fit.Result{
		Deployment: engine.Default(),
		Estimates: []fit.Estimate{
			{Name: "step-base", Value: 12_345 * engine.Microsecond, Low: 12_100 * engine.Microsecond, High: 12_600 * engine.Microsecond, Identified: true, Fitted: true},
			{Name: "prefill-attention", Value: 3, Low: 0, High: 90 * engine.Nanosecond, Fitted: true},
			{Name: "transfer-base", Value: 2 * engine.Millisecond},
		},
		Rows: []fit.Row{row("line 2", fit.Fitted, 1, 0.01), row("line 3", fit.Fitted, 20, -0.02), row("line 4", fit.HeldOut, 6, 0.15), stalled},
		Errors: []fit.ErrorSummary{
			{Metric: fit.MeanTTFT, Role: fit.Fitted, Rows: 2, Median: 0.015, P90: 0.019, Max: 0.02},
			{Metric: fit.MeanTTFT, Role: fit.HeldOut, Rows: 1, Median: 0.15, P90: 0.15, Max: 0.15},
		},
		Range: fit.Range{ISL: fit.Interval{Low: 64, High: 3000}, OSL: fit.Interval{Low: 150, High: 150}, Concurrency: fit.Interval{Low: 1, High: 128}},
		Noise: 0.013, Notes: []string{"The number of prompts is not stated: 10 per slot are assumed."},
	}}
}

// The report names each parameter with interval and unit, what is not identified, the
// errors of held-out measurements, and what was screened out and why.
func TestEngineFitReport(t *testing.T) {
	f := fittedEngine()
	text := written(t, f.Document().WriteText)
	for _, want := range []string{
		"step-base", "12.3 ms", "12.1 ms", "12.6 ms", "90.0 ns", "not identified", "kept", "Mean TTFT (ms)", "15.0", "line 5 (excluded): Little's law", "0.42 of the", "64 to 3,000", "10 per slot",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if lines := strings.Count(written(t, f.Document().WriteCSV), "\n"); lines != 1+3*len(fit.Metrics()) {
		t.Errorf("%d lines of CSV", lines)
	}
	var object report.EngineFitJSON
	if err := json.Unmarshal([]byte(written(t, f.JSON)), &object); err != nil || object.Rows[3].Findings[0].Kind != "Little's law" || object.Estimates[1].Identified {
		t.Errorf("%+v, %v", object, err)
	}
	page := written(t, f.Document().WriteHTML)
	if n := strings.Count(page, "Predicted"); n < 6 {
		t.Errorf("%d figures on the page", n)
	}
	refused := written(t, report.EngineFit{Subject: "a table", Refused: true, Result: &fit.Result{Rows: f.Rows}}.Document().WriteText)
	if !strings.Contains(refused, "line 5 (excluded): Little's law") {
		t.Error(refused)
	}
}
