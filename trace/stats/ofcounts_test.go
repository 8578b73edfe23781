package stats_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace/stats"
)

// written draws repeated values, as a slice and with counts.
func written(t *rapid.T, name string) (values []float64, counted []stats.Counted) {
	for _, v := range rapid.SliceOfN(rapid.IntRange(-3, 30), 1, 12).Draw(t, name) {
		count := rapid.IntRange(0, 4).Draw(t, "count")
		counted = append(counted, stats.Counted{Value: float64(v), Count: count})
		values = append(values, slices.Repeat([]float64{float64(v)}, count)...)
	}
	return values, counted
}

// Of and OfCounts agree in every respect.
func TestOfCountsIsOfAllValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values, counted := written(t, "values")
		other, _ := written(t, "other")
		all, counts, others := stats.Of(values), stats.OfCounts(counted), stats.Of(other)
		if all.Count != counts.Count || !near(all.Sum, counts.Sum) || !near(all.Mean, counts.Mean) ||
			!near(all.Std, counts.Std) || all.Min != counts.Min || all.Max != counts.Max {
			t.Fatalf("%+v, want %+v", counts, all)
		}
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		if got, want := counts.Quantile(p), all.Quantile(p); !near(got, want) {
			t.Fatalf("Quantile(%v) = %v, want %v", p, got, want)
		}
		bins := stats.BinsFor(rapid.IntRange(1, 8).Draw(t, "bins"), all, others)
		if got, want := counts.Histogram(bins), all.Histogram(bins); !slices.Equal(got, want) {
			t.Fatalf("histogram %v, want %v", got, want)
		}
		if all.Count > 0 && others.Count > 0 {
			if got, want := stats.KS(counts, others), stats.KS(all, others); got != want {
				t.Fatalf("KS %v, want %v", got, want)
			}
			if got, want := stats.Wasserstein(others, counts), stats.Wasserstein(others, all); got != want {
				t.Fatalf("Wasserstein %v, want %v", got, want)
			}
		}
	})
}
