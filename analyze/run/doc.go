// Package run computes the metrics of a replay and decides whether to trust them.
//
// [Compute] reads the records of a run once and returns a [Result]:
//
//	result, err := run.Compute(folder.Records(), run.Options{})
//	fmt.Println(result.Verdict.Level, result.TTFT.Quantile(0.99))
//
// Every metric is a pure function of the records. Never show one without the
// [Verdict]: it tells whether the client distorted the numbers. [Latency] and
// [Metric] name all metrics, with their keys, labels, units and the direction in
// which they improve; everything that prints or compares metrics uses them.
//
// Latencies are in milliseconds, instants are offsets from the start of the run.
// [Merge] joins the runs of several machines into one.
package run
