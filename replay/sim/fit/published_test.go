package fit

import (
	"math"
	"os"
	"slices"
	"testing"

	"moontide/replay/sim/engine"
	"moontide/trace/stats"
)

// publishedFits are fits to some rows of published tables, with the median errors, in
// percent, that their predictions of the other rows may have: of throughput and means of
// E2EL, TTFT and TPOT, and of TTFT alone.
var publishedFits = []struct {
	table           string
	prefill, decode int
	fitted          []string // ISL:OSL at concurrency
	median, ttft    float64
}{
	{"deepseek-r1-tp16", 0, 0, []string{"3000:150 at 1", "3000:150 at 128", "1000:1000 at 2", "1000:1000 at 8", "1000:1000 at 32", "1000:1000 at 64", "1000:1000 at 128", "500:1000 at 16"}, 1.5, 5},
	{"qwen3-32b-3p1d", 3, 1, []string{"3000:150 at 2", "3000:150 at 16", "3000:150 at 128", "1000:1000 at 2", "1000:1000 at 16", "1000:1000 at 64", "1000:1000 at 128", "500:1000 at 128", "2500:100 at 1", "2500:100 at 32"}, 2.3, 5},
	{"deepseek-r1-1p1d", 1, 1, []string{"3000:150 at 1", "3000:150 at 8", "3000:150 at 32", "3000:150 at 128", "1000:1000 at 2", "1000:1000 at 16", "1000:1000 at 128", "500:1000 at 8", "500:1000 at 128"}, 5, 12},
}

// allFitsVariable enables fits that take long.
const allFitsVariable = "MOONTIDE_ALL_FITS"

// Each table is predicted from a third of its rows.
func TestPublishedTables(t *testing.T) {
	if os.Getenv(allFitsVariable) == "" {
		t.Skip("takes a minute: set " + allFitsVariable)
	}
	for _, tt := range publishedFits {
		t.Run(tt.table, func(t *testing.T) {
			all := published(t, tt.table)
			var fitted []Measurement
			for _, m := range all {
				if slices.Contains(tt.fitted, m.Load.String()) {
					fitted = append(fitted, m)
				}
			}
			r, err := Fit(t.Context(), fitted, Options{Template: engine.Deployment{Prefill: tt.prefill, Decode: tt.decode}, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			var means, ttft []float64
			for _, row := range Screen(all) {
				if row.Findings != nil || slices.Contains(tt.fitted, row.Load.String()) {
					continue
				}
				predicted, err := Simulate(r.Deployment, row.Load, 1)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range []Metric{OutputThroughput, MeanE2EL, MeanTTFT, MeanTPOT} {
					e, _ := row.Error(predicted, m)
					means = append(means, 100*math.Abs(e))
				}
				ttft = append(ttft, means[len(means)-2])
			}
			of, alone := stats.Of(means), stats.Of(ttft)
			t.Logf("%d values: median %.1f %%, p90 %.1f %%, max %.1f %%; mean TTFT median %.1f %%", of.Count, of.Quantile(0.5), of.Quantile(0.9), of.Max, alone.Quantile(0.5))
			if of.Quantile(0.5) > tt.median || alone.Quantile(0.5) > tt.ttft {
				t.Errorf("errors exceed %.1f %%, or %.1f %% of TTFT", tt.median, tt.ttft)
			}
		})
	}
}
