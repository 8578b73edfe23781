// Package bench executes measured runs: it replays a trace against an endpoint, records
// every request, and computes the verdict.
//
// [Run] does one run:
//
//	result, err := bench.Run(ctx, bench.Config{
//		Trace:  bench.Trace{Path: "trace.jsonl"},
//		Client: openai.Config{URL: "http://127.0.0.1:8000"},
//	})
//	if err != nil { ... }
//	fmt.Println(result.Metrics.Verdict.Level, result.Metrics.TTFT.Mean)
//
// [Measure] measures recorded runs again, and [RunSweep] executes the runs of a
// [Sweep] over concurrencies or request rates. [SearchLoad] finds the largest load that
// meets objectives. The package prints nothing: messages and progress go to an [Observer].
//
// Sweeps, searches and the runs of [RunEngineSweep] are one loop: each says which run comes
// next, given those before, and continues what its folder has. A [Planner] predicts what
// many deployments of simulated engines would do with the requests of a trace, in memory.
//
// [Calibrate] measures how much load this machine can generate and how accurate
// its timestamps are. It drives a simulated endpoint in another process, which
// reports the write time of each event on a clock that both processes share.
// [Calibration.Save] stores the result, and later runs report if they exceeded its
// range.
package bench
