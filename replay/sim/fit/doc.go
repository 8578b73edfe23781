// Package fit estimates the costs of a simulated deployment
// ([moontide/replay/sim/engine]) from measurements of a real one: loads, and the
// throughput and latencies measured under them.
//
// Read measurements with [ReadTable], or make them from recorded requests, and call
// [Fit]:
//
//	table, err := fit.ReadTable(file)
//	...
//	result, err := fit.Fit(ctx, table.Measurements, fit.Options{})
//	cluster, err := result.Deployment.New()
//
// [Result.File] and [ReadFile] store the deployment in a file, engine.json.
//
// [Screen] first excludes rows that contradict laws that hold for every server, such as
// Little's. The form of the costs is fixed by the kind of deployment: a step takes
//
//	step-base + decode-table(sequences) + decode-per-context-token x context
//	          + (if it computes prompt tokens) prefill-step + prefill-per-token x tokens
//
// and a request waits request-latency before. Prefill engines have costs of their own,
// compute a prompt at a time, and send it over a link. Only the budget of tokens of a step,
// and whether transfers share the link, are chosen, by the loss.
//
// The logarithms of predicted to measured values are minimised by Levenberg's and
// Marquardt's method on the logarithms of the costs, with Cauchy's loss, from three points.
//
// What a fit can promise is its held-out error: each row is predicted by a fit without the
// rows of its shape, and by one without those of its load. A parameter that these fits move
// by more than half is not identified.
//
// What identifies what: one request at a time at two prompt lengths gives the costs of a
// prompt; long answers at several concurrencies the decode table, which does not reach
// beyond them; long contexts at a high concurrency the cost of context; many long prompts
// with short answers what prefill costs, apart from latency. The number of prompts of a run
// has to be known: a wrong one is absorbed by the costs.
package fit
