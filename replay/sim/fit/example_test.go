package fit_test

import (
	"context"
	"fmt"
	"os"

	"moontide/replay/sim/fit"
)

// A published table of a mixture of experts on 16 GPUs, of which a third is fitted.
func Example() {
	file, err := os.Open("../../../traces/measurements/deepseek-r1-tp16.csv")
	if err != nil {
		panic(err)
	}
	defer file.Close()
	table, err := fit.ReadTable(file)
	if err != nil {
		panic(err)
	}
	result, err := fit.Fit(context.Background(), table.Measurements, fit.Options{})
	if err != nil {
		panic(err)
	}
	for _, e := range result.Errors {
		if e.Role == fit.HeldOut && e.Metric == fit.MeanE2EL {
			fmt.Printf("median error below 5 %%: %v, of %d rows\n", e.Median < 0.05, e.Rows)
		}
	}
	// Output:
	// median error below 5 %: true, of 16 rows
}
