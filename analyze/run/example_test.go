package run_test

import (
	"fmt"

	"moontide/analyze/run"
	"moontide/replay/runfile"
)

// Compute the metrics of a run's folder.
func Example() {
	folder, err := runfile.Open("../../traces/runs/prefix")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer folder.Close()
	result, err := run.Compute(folder.Records(), run.Options{BlockSize: folder.Run.Trace.BlockSize})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range []run.Metric{run.MustMetric("completed"), run.TTFT.Metric(run.Mean), run.ITL.Metric(run.Percentile(99))} {
		fmt.Printf("%s: %.2f\n", m.Heading(), m.Value(result).Value)
	}
	// Output:
	// Successful requests: 153.00
	// Mean TTFT (ms): 956.79
	// P99 ITL (ms): 408.60
}
