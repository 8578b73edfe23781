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

// Judge a run by conditions that must hold.
func ExampleGate() {
	conditions, err := run.ParseConditions("p99_ttft<2s,failed<1%")
	if err != nil {
		fmt.Println(err)
		return
	}
	result := &run.Result{Completed: 300, Failed: 1}
	for _, c := range conditions {
		j := run.Gate{Condition: c}.Judge(result)
		fmt.Println(j.Passed, j)
	}
	// Output:
	// false p99_ttft_ms<2000 must hold: not measured in this run
	// true failed_share<1% must hold: 0.33 %, margin 0.67 %
}
