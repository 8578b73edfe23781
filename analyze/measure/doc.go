// Package measure computes the metrics of a replay and decides whether to trust them.
//
// [Compute] reads the records of a run once and returns a [Result]:
//
//	result, err := measure.Compute(folder.Records(), measure.Options{})
//	fmt.Println(result.Verdict.Level, result.TTFT.Quantile(0.99))
//
// Every metric is a pure function of the records. Always show the [Verdict] with
// the metrics: it reports whether the client distorted them. [Latency] and [Metric]
// define the key, label, unit and direction of improvement of every metric; all
// code that prints or compares metrics uses them.
//
// Latencies are in milliseconds; times are offsets from the start of the run.
// Package parts combines the runs of several machines.
package measure
