// Package diff compares two sides of a benchmark, with confidence intervals. A side
// is one run or several runs of the same test.
//
// [Read] each run once, then compare with [Of]:
//
//	a, err := diff.Read(diff.Source{Name: "a", Run: folder.Run, Records: folder.Records()}, nil)
//	...
//	c := diff.Of([]*diff.Run{a}, []*diff.Run{b}, diff.Options{})
//
// The [Comparison] has the difference of every metric, the differences request by
// request, where they come from, which settings changed, and objections against
// comparing the sides at all; heeding those is up to the caller. A [Gate] turns a
// difference into pass or fail. All functions are safe for concurrent use.
//
// # Confidence intervals
//
// The requests of a run are not independent: one that waits in a queue waits with
// its neighbours. So a run is cut into 32 stretches of consecutive rows, and the
// bootstrap draws stretches, the same for both sides: a part of the trace that is
// slow on both sides cancels out. The intervals are percentile intervals, widened
// for the number of stretches (Hesterberg, "What Teachers Should Know About the
// Bootstrap", 2015, section 5.3) and for the correlation of neighbouring stretches
// (Fishman's autoregressive correction of batch means, from jackknife values). The
// tests measure their coverage. BCa intervals cover less: their correction
// depends on tails about which a few stretches tell little.
//
// This holds in a steady state. In a queue that grows through the run, latencies
// rise and the difference of the sides accumulates: it is a random walk with
// drift, whose spread no resample knows. In an M/M/1 queue at 130 % load the
// bootstrap found a difference between equal sides 4 times in 10 and missed a
// real 5 % as often. Where a latency rises on both sides, the interval comes from
// the steps between stretches instead, which are independent: see
// [Difference.Rising].
//
// A percentile has no interval if the values beyond it lie in fewer than 8
// stretches; the same holds for the share of a rare event. p99 takes about 1,200
// requests, more if slow ones come together. Means take 20 stretches with values.
//
// With single runs, an interval covers the variation within them. Variation
// between runs, such as how a server started, takes several runs per side. With
// three or more on both sides, the run means are the sample: Student's t with
// Welch's degrees of freedom. With fewer, no interval is narrower than Student's
// t over the runs. The bands of an [Attribution] always cover the variation within
// runs only.
package diff
