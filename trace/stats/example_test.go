package stats_test

import (
	"fmt"

	"moontide/trace/stats"
)

func Example() {
	before := stats.Of([]float64{12, 15, 11, 31})
	after := stats.Of([]float64{10, 14, 11, 22})
	fmt.Println("mean", before.Mean, "median", before.Quantile(0.5), "p75", before.Quantile(0.75))
	fmt.Println("KS", stats.KS(before, after), "Wasserstein", stats.Wasserstein(before, after))

	bins := stats.BinsFor(4, before, after)
	fmt.Println(bins.Edges, before.Histogram(bins), after.Histogram(bins))
	// Output:
	// mean 17.25 median 13.5 p75 19
	// KS 0.25 Wasserstein 3
	// [10 16 22 28 34] [3 0 0 1] [3 0 1 0]
}
