package fit

import (
	"os"
	"slices"
	"testing"
	"time"

	"moontide/replay/sim/engine"
)

// publishedFits are fits to published tables, with the rows that they are fitted to
// and the errors that the held-out rows may have.
var publishedFits = []struct {
	table            string
	prefill, decode  int
	fitted           []string // ISL:OSL at concurrency
	median, p90      float64  // of throughput and means of E2EL, TTFT and TPOT
	p99E2EL, p99TTFT float64  // medians; 0 is not limited
}{
	{"deepseek-r1-tp16", 0, 0, []string{"3000:150 at 1", "3000:150 at 128", "1000:1000 at 2", "1000:1000 at 8", "1000:1000 at 32", "1000:1000 at 64", "1000:1000 at 128", "500:1000 at 16"}, 0.02, 0.08, 0.05, 0.15},
	{"qwen3-32b-3p1d", 3, 1, []string{"3000:150 at 2", "3000:150 at 16", "3000:150 at 128", "1000:1000 at 2", "1000:1000 at 16", "1000:1000 at 64", "1000:1000 at 128", "500:1000 at 128", "2500:100 at 1", "2500:100 at 32"}, 0.025, 0.10, 0, 0},
	{"deepseek-r1-1p1d", 1, 1, []string{"3000:150 at 1", "3000:150 at 8", "3000:150 at 32", "3000:150 at 128", "1000:1000 at 2", "1000:1000 at 16", "1000:1000 at 128", "500:1000 at 8", "500:1000 at 128"}, 0.08, 0.25, 0, 0},
}

// allFitsVariable enables fits that take long.
const allFitsVariable = "MOONTIDE_ALL_FITS"

// Each table is predicted from a third of its rows.
func TestPublishedTables(t *testing.T) {
	if testing.Short() {
		t.Skip("fits for long")
	}
	for _, tt := range publishedFits {
		t.Run(tt.table, func(t *testing.T) {
			if tt.prefill > 0 && os.Getenv(allFitsVariable) == "" {
				t.Skip("takes a minute: set " + allFitsVariable)
			}
			r := fitPublished(t, tt.table, tt.prefill, tt.decode, tt.fitted)
			means := Summarise(HeldOut, 0, ErrorsOf(r.Rows, HeldOut, OutputThroughput, MeanE2EL, MeanTTFT, MeanTPOT))
			e2el, ttft := Summarise(HeldOut, 0, ErrorsOf(r.Rows, HeldOut, P99E2EL)), Summarise(HeldOut, 0, ErrorsOf(r.Rows, HeldOut, P99TTFT))
			t.Logf("%d values of held-out rows: median %.1f %%, p90 %.1f %%, max %.1f %%; p99 E2EL median %.1f %%, p99 TTFT median %.1f %%",
				means.Rows, 100*means.Median, 100*means.P90, 100*means.Max, 100*e2el.Median, 100*ttft.Median)
			if means.Median > tt.median || means.P90 > tt.p90 || tt.p99E2EL > 0 && e2el.Median > tt.p99E2EL || tt.p99TTFT > 0 && ttft.Median > tt.p99TTFT {
				t.Errorf("errors exceed %.1f %% (median) or %.1f %% (p90), or those of p99s", 100*tt.median, 100*tt.p90)
			}
		})
	}
}

func fitPublished(t testing.TB, table string, prefill, decode int, fitted []string) *Result {
	t.Helper()
	all := published(t, table)
	var heldOut []int
	for i, m := range all {
		if !slices.Contains(fitted, m.Load.String()) {
			heldOut = append(heldOut, i)
		}
	}
	began := time.Now()
	r, err := Fit(t.Context(), all, Options{Template: engine.Deployment{Prefill: prefill, Decode: decode}, HeldOut: heldOut, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("fitted in %v: %s, loss %.4f", time.Since(began).Round(time.Second/10), r.Structures[0].Name, r.Structures[0].Loss)
	for _, e := range r.Estimates {
		t.Logf("%s: %v (%v to %v) identified: %v", e.Name, e.Value, e.Low, e.High, e.Identified)
	}
	for _, row := range r.Rows {
		errors := make([]float64, 0, numMetrics)
		for _, m := range Metrics() {
			e, _ := row.Error(m)
			errors = append(errors, 100*e)
		}
		t.Logf("%-17s %-8s %6.1f", row.Load, row.Role, errors)
	}
	return r
}
