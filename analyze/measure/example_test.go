package measure_test

import (
	"fmt"

	"moontide/analyze/measure"
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
	result, err := measure.Compute(folder.Records(), measure.Options{BlockSize: folder.Run.Trace.BlockSize})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range []measure.Metric{measure.MustMetric("completed"), measure.TTFT.Metric(measure.Mean), measure.ITL.Metric(measure.Percentile(99))} {
		fmt.Printf("%s: %.2f\n", m.Heading(), m.Value(result).Value)
	}
	// Output:
	// Successful requests: 153.00
	// Mean TTFT (ms): 956.79
	// P99 ITL (ms): 408.60
}
