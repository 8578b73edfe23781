// Package experiment executes measured runs: it replays a trace against an endpoint, records
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
// Sweeps, searches and [RunEngineSweep] share one loop, which asks for the next run, given
// those before, and continues the runs of its folder. A [Planner] replays a trace in memory
// on many deployments of simulated engines.
//
// [Calibrate] measures how much load this machine can generate and how accurate its
// timestamps are, with a simulated endpoint in another process that reports the write time
// of each event on a shared clock. [Calibration.Save] stores the range, and later runs
// report if they exceeded it.
package experiment
