package enginefile_test

import (
	"reflect"
	"testing"

	"moontide/replay/sim/engine"
	"moontide/replay/sim/enginefile"
	"moontide/replay/sim/fit"
)

// The file of a fit has its fitted parameters, errors, range and counts.
func TestOfFit(t *testing.T) {
	want := fittedFile()
	r := &fit.Result{
		Deployment: disaggregated(),
		Estimates: []fit.Estimate{
			{Name: "step-base", Value: 4 * engine.Millisecond, Low: 3_123_456_789, High: 5 * engine.Millisecond, Identified: true, Fitted: true},
			{Name: "transfer-base", Value: 2 * engine.Millisecond},
			{Name: "decode-engine.decode-table.8", Low: 2 * engine.Millisecond, High: 3 * engine.Millisecond, Fitted: true},
		},
		Parameters: want.Fit.Covariance.Parameters,
		Covariance: [][]float64{{0.01, 0.004}, {0.004, 0.04}},
		Range:      fit.Range{ISL: fit.Interval{Low: 64, High: 3000}, OSL: fit.Interval{Low: 150, High: 150}, Concurrency: fit.Interval{Low: 1, High: 128}},
		Rows:       []fit.Row{{Role: fit.Fitted}, {Role: fit.Fitted}, {Role: fit.HeldOut}, {Role: fit.Excluded}},
		Errors:     []fit.ErrorSummary{{Metric: fit.MeanTTFT, Role: fit.HeldOut, Rows: 1, Median: 0.02, P90: 0.02, Max: 0.02}, {Metric: fit.P99TTFT}},
		Notes:      want.Fit.Notes,
	}
	p := want.Fit.Provenance
	p.Fitted, p.HeldOut, p.Excluded = 0, 0, 0
	if got := enginefile.OfFit(r, p); !reflect.DeepEqual(got.Fit, want.Fit) || !reflect.DeepEqual(got.Deployment(), want.Deployment()) {
		t.Errorf("%+v, want %+v", got.Fit, want.Fit)
	}
}
