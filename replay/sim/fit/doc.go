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
// [Screen] first looks for what contradicts laws that hold for every server: in a closed
// loop, throughput x E2EL is the concurrency (Little's law); E2EL is TTFT + TPOT x
// (tokens - 1); more concurrency makes nothing faster. Such rows are excluded, and if
// they are more than a third the fit is refused.
//
// A deployment is simulated under each load, and its costs are changed until the
// logarithms of predicted to measured values are smallest: Levenberg's and Marquardt's
// method on the logarithms of the costs, with Cauchy's loss, from several starting
// points. A step takes
//
//	step-base + decode-table(sequences) + decode-per-context-token x context
//	          + (if it computes prompt tokens) prefill-step + prefill-per-token x tokens
//
// and a request waits request-latency before. Prefill engines have costs of their own,
// and send prompts over links. Limits of steps, the law of sharing of a link and the
// point of the first token are chosen by comparing fits, if the template leaves them
// open.
//
// Of engines that compute prompts and answers, three more costs are fitted if
// measurements can show them and they explain more than chance: api-server-time (many
// short prompts in flight), wake-up-time (random arrivals at a server that is mostly
// idle), and prefill-attention x (pairs of a token and one before it) (prompts of 6,000
// tokens, or of 1,000 beside some that are 16 times shorter).
//
// What identifies what: one request at a time at two prompt lengths gives the costs of
// a prompt; long answers at several concurrencies the decode table, which does not
// reach beyond them; long contexts at a high concurrency the cost of context; many long
// prompts with short answers what prefill costs, apart from latency.
//
// Intervals come from differences about as long as the uncertainty, and are widened by
// other minima with nearly the same loss. Those are common in disaggregated deployments,
// whose requests move in waves, so their intervals have another, empirical factor. Of 100
// random engines, measured by planned runs with noise of 1 %, 98 % of the intervals hold
// the truth.
//
// Limits: the number of prompts of a run has to be known: a wrong one is absorbed by the
// costs. Lengths of answers that stop early are not known from a table; see [Load].
package fit
