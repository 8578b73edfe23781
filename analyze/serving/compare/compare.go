// Package compare says how two sides of a benchmark differ, and how sure that
// is. A side is one run, or several runs of the same test.
//
// [Read] takes in a run, once. [Of] compares two sides: every metric with the
// confidence interval of its difference, the requests that both sides had one by
// one, where the difference comes from, what was configured differently, and
// what speaks against comparing the two at all, which is for the caller to heed.
// A [Gate] makes a pass or a fail of it.
//
// # How sure
//
// Requests of a run are not independent: one that waits in a queue waits with its
// neighbours. So a run is cut into 32 stretches of consecutive rows, and the
// bootstrap draws stretches, the same of both sides: what makes a stretch of the
// trace slow on both sides cancels out. The intervals are percentile intervals,
// widened for the number of stretches (Hesterberg, "What Teachers Should Know
// About the Bootstrap", 2015, section 5.3) and for the correlation of
// neighbouring stretches, which is taken from jackknife values (Fishman's
// autoregressive correction of batch means). Their coverage is measured by the
// package's tests. BCa intervals were tried and cover less: the tails that they
// correct by are what a few stretches tell least about.
//
// A percentile has no interval where the values beyond it lie in fewer than 8
// stretches, nor has a share of so rare a thing: p99 takes about 1,200 requests,
// more where slow ones come together. Means take 20 stretches with a value.
//
// An interval of single runs covers the chance inside of them. What differs from
// one run to the next, such as how a server started, shows in several runs a side
// alone: then no interval is narrower than that of Student's t over the runs.
package compare

import (
	"runtime"
	"slices"
	"sync"

	"moontide/trace"
)

// Options change how sides are compared. The zero value works.
type Options struct {
	Metrics []Metric // nil: [Metrics]
	Seed    uint64   // of the resamples
	// Resamples is the number of bootstrap resamples, 0 for 2,000.
	Resamples int
}

const defaultResamples = 2000

// Level is the confidence of every interval.
const Level = 0.95

// Comparison is how side B differs from side A.
type Comparison struct {
	A, B []*Run
	// Objections speak against comparing the sides.
	Objections []Objection
	// Changes are the settings in which the runs differ.
	Changes []Change
	// Paired says that both sides had the same requests, row by row.
	Paired      bool
	Differences []Difference
	// Requests are the differences of single requests, where they are paired,
	// and Origins is where these come from.
	Requests []Requests
	Origins  []Origin
	// Pairs are the rows that were completed on both sides, OnlyA and OnlyB those
	// that were on one.
	Pairs, OnlyA, OnlyB int
}

// Difference is how a metric of B differs from that of A. Absent is what was
// not measured.
type Difference struct {
	Metric           Metric
	A, B             trace.Opt[float64]
	RunsA            []trace.Opt[float64] // of each run
	RunsB            []trace.Opt[float64]
	Difference       trace.Opt[float64]  // B - A
	Relative         trace.Opt[float64]  // B / A - 1; absent where A is not positive
	Interval         trace.Opt[Interval] // of Difference
	RelativeInterval trace.Opt[Interval]
}

// Significant reports whether the interval of the difference is known and leaves
// out zero.
func (d Difference) Significant() bool { return d.Interval.Set && !d.Interval.Value.Has(0) }

// Better is 1 where B is better, -1 where it is worse, and 0 where it is neither
// or that is not known to be significant.
func (d Difference) Better() int {
	switch {
	case !d.Significant():
		return 0
	case d.Difference.Value > 0:
		return d.Metric.better
	}
	return -d.Metric.better
}

// Of compares side B with side A, each of one run or more. All runs must have
// been read with the metrics that are asked for.
func Of(a, b []*Run, opts Options) *Comparison {
	if opts.Metrics == nil {
		opts.Metrics = Metrics()
	}
	if opts.Resamples <= 0 {
		opts.Resamples = defaultResamples
	}
	c := &Comparison{A: a, B: b, Objections: objections(a, b), Changes: changes(a, b), Paired: sameRequests(a, b)}
	cutA, cutB := cutRows(a), cutRows(b)
	if c.Paired {
		cutA = cutRows(slices.Concat(a, b))
		cutB = cutA
	}
	sideA, sideB := newSide(a, cutA), newSide(b, cutB)
	draws := drawAll(opts.Seed, opts.Resamples)
	c.Differences = make([]Difference, len(opts.Metrics))
	inParallel(len(opts.Metrics), func(i int) {
		c.Differences[i] = difference(opts.Metrics[i], sideA, sideB, draws)
	})
	if c.Paired {
		p := pairsOf(sideA, sideB)
		c.Pairs, c.OnlyA, c.OnlyB = len(p.pairs), p.onlyA, p.onlyB
		c.Requests = p.differences(draws)
		c.Origins = p.origins(draws)
	}
	return c
}

// inParallel does n things on all cores.
func inParallel(n int, do func(i int)) {
	var work sync.WaitGroup
	next := make(chan int)
	for range min(n, runtime.GOMAXPROCS(0)) {
		work.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	work.Wait()
}

// difference compares one metric.
func difference(m Metric, a, b side, draws []weights) Difference {
	d := Difference{Metric: m, RunsA: a.values(m), RunsB: b.values(m)}
	var statA, statB statistic
	if m.statistic != nil {
		statA, statB = m.statistic(a), m.statistic(b)
	}
	d.A, d.B = estimate(d.RunsA, statA), estimate(d.RunsB, statB)
	if !d.A.Set || !d.B.Set {
		return d
	}
	d.Difference = trace.Some(d.B.Value - d.A.Value)
	if d.A.Value > 0 {
		d.Relative = trace.Some(d.B.Value/d.A.Value - 1)
	}
	if !statA.known || !statB.known {
		return d
	}
	interval := func(value, spread float64, of func(a, b float64) float64) trace.Opt[Interval] {
		resampled := intervalOf(value, draws, func(w *weights) float64 { return of(statA.of(w), statB.of(w)) })
		return noNarrower(resampled, value, spread)
	}
	spread := spreadOfRuns(d.RunsA, d.RunsB)
	d.Interval = interval(d.Difference.Value, spread, func(a, b float64) float64 { return b - a })
	if d.Relative.Set {
		d.RelativeInterval = interval(d.Relative.Value, spread/d.A.Value, func(a, b float64) float64 { return b/a - 1 })
	}
	return d
}

// estimate is a side's value: of one run what that run measured, of several what
// all their records give together, or else the mean.
func estimate(runs []trace.Opt[float64], s statistic) trace.Opt[float64] {
	sum := 0.
	for _, v := range runs {
		if !v.Set {
			return v
		}
		sum += v.Value
	}
	if len(runs) > 1 && s.of != nil {
		return trace.Some(s.of(&once))
	}
	return trace.Some(sum / float64(len(runs)))
}
