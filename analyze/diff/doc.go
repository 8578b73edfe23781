// Package diff compares two sides of a benchmark and reports confidence intervals.
// A side is one or more runs of the same test.
//
// [Read] each run once, then compare with [Of]:
//
//	a, err := diff.Read(diff.Source{Name: "a", Run: folder.Run, Records: folder.Records()})
//	...
//	c := diff.Of([]*diff.Run{a}, []*diff.Run{b}, diff.Options{})
//
// Objections to comparing the sides at all are left to the caller to act on. [Judge]
// applies a gate to a difference. All functions are safe for concurrent use.
//
// # Confidence intervals
//
// Requests that wait in the same queue are delayed together, so they are not
// independent. A run is therefore cut into 32 stretches of consecutive rows, and
// the bootstrap resamples stretches, the same ones on both sides, so that a part of
// the trace that is slow on both cancels out. The percentile intervals are widened
// for the number of stretches (Hesterberg, "What Teachers Should Know About the
// Bootstrap", 2015, section 5.3) and for the correlation of neighbouring stretches
// (Fishman's autoregressive correction of batch means, from jackknife values). The
// tests measure their coverage. Intervals are too narrow where a queue grows through
// the whole run, because a delay then carries over to all later requests.
//
// A percentile or the share of a rare event has no interval if the values beyond it
// fall in fewer than 8 stretches: p99 needs about 1,200 requests, more if slow
// requests are clustered. Means need 20 stretches with values.
//
// With fewer than three runs on a side, an interval covers only the variation within
// runs, not between server starts. With three or more on both sides, the run means are
// the sample: Student's t with Welch's degrees of freedom.
package diff
