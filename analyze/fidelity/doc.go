// Package fidelity measures how well a generated trace resembles its source.
//
// [Collect] keeps what is compared of a trace, and [Compare] judges:
//
//	drawn, err := fidelity.Collect(rows, fidelity.Options{})
//	...
//	source, err := fidelity.Collect(sourceRows, fidelity.Options{Limit: drawn.Requests()})
//	...
//	report := fidelity.Compare(source, drawn, fidelity.Limits{})
//	fmt.Println(report.Pass())
//
// # Aspects
//
// Each [Aspect] has a value in both traces, the gap between them, and the largest gap
// that passes: the larger of a bound and twice the noise floor, the gap that the
// source has against itself. [Aspects] lists them with their definitions.
//
// Hit rates, shared context, peaks and variation over time depend on the length of a
// trace. A longer drawn trace is therefore cut into pieces of as many requests as the
// source has, the last of which ends with the trace; an aspect by piece is the mean over
// pieces, each with caches that are empty at first, and the values of a distribution are
// those of all pieces. Only the latencies of requests that all arrive at once are not
// compared then: they grow with the number of requests. Of a longer source, only as many
// leading requests are compared as the drawn trace has: set [Options].Limit.
//
// An aspect that the source has no values of is not compared, and neither are turn gaps if
// both traces have fewer than fifteen: another trace of the same kind may have none.
//
// # Noise floor
//
// The noise floor of an aspect is its gap between two resamples of the source, in three of
// four pairs: about 1.6 standard errors of a mean, as much as between two halves, but
// without the chance of a single pair. Seeds are fixed. Three kinds of resamples are made:
//
//   - nearby: runs of successive requests, as many as the square root of all, each
//     replaced by one that begins at most two runs away (local block bootstrap:
//     Paparoditis and Politis 2002). They keep slow changes of the source: a drift is no
//     noise. Times follow from the gaps between requests.
//   - sessions: drawn with replacement, with all their requests at their own times
//     (cluster bootstrap). A source of few sessions says little about others. A request
//     without a session is one of its own.
//   - anywhere: runs of a twentieth of the requests, from the whole source.
//
// The floor is that of nearby, or the lower of sessions and anywhere if that is higher: a
// drift makes anywhere vary, and one giant conversation makes sessions vary, but neither
// makes both. Peaks use nearby and sessions, inter-arrival times runs of a twentieth from
// at most two such runs away. Hit rates and latencies are resampled by request: its own
// hits and its own latency; a cache's size is varied by the noise of the rate of block
// references, too, because it decides how long a block stays. Gaps are multiplied
// by sqrt(n/(n-1)) for n sessions or runs to choose from. No floor is above 0.3, or 0.5 if
// it is relative: a source of a few requests does not pass everything.
package fidelity
