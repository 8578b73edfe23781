// Package fidelity measures how well a generated trace resembles its source.
//
// [Collect] keeps what is compared of a trace, and [Compare] judges:
//
//	drawn, err := fidelity.Collect(rows, 0)
//	source, err := fidelity.Collect(trace.Take(sourceRows, drawn.Requests), 0)
//	fmt.Println(fidelity.Compare(source, drawn, 1).Pass())
//
// [Aspects] lists seven properties; the eighth is novelty, see [Report]. The gap of an aspect
// is the largest of its values. Its limit is the larger of a bound and twice the noise floor,
// the gap between the source and another trace like it.
//
// Hit rates, shared context and peaks depend on the length of a trace. A longer drawn trace
// is therefore cut into pieces as long as the source, each with empty caches at its beginning.
// The last piece ends with the trace, so it may overlap the one before.
//
// The noise floor is the gap between two resamples of the source (local block bootstrap:
// Paparoditis and Politis 2002), in three of four pairs, which is about 1.6 standard errors of
// a mean. A resample consists of runs of successive sessions, as many as the square root of
// all, with all their requests; each run is replaced by one that begins at most two runs away,
// so that a drift of the source is no noise. Runs of requests make another floor, and the
// higher one counts: one long session would have none otherwise. No floor is above 0.3, or
// 0.25 if it is a ratio: a source of a few requests does not pass everything. Floors of few
// sessions are wide nevertheless, see [Trace.FewSessions].
package fidelity
