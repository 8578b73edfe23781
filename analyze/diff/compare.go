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
// That holds where a run goes on as it began. In a queue that grows through the
// run a latency rises, and the difference of the sides adds up: it is a random
// walk with a drift, and no resample of stretches knows its spread. Of an M/M/1
// queue at 130 % load the bootstrap took equal sides for different 4 times in 10,
// and missed a real 5 % as often, for it counts the rise as noise. Where a
// latency rises on both sides, the interval is made of the steps from one stretch
// to the next instead, which are independent, see [Difference.Rising].
//
// A percentile has no interval where the values beyond it lie in fewer than 8
// stretches, nor has a share of so rare a thing: p99 takes about 1,200 requests,
// more where slow ones come together. Means take 20 stretches with a value.
//
// An interval of single runs covers the chance inside of them. What differs from
// one run to the next, such as how a server started, shows in several runs a side
// alone. Three or more on both sides are independent whatever happens in each, so
// their own values make the interval of every metric, by Student's t with Welch's
// degrees of freedom, and it is of the trace that they replayed. Of fewer, no
// interval is narrower than that of Student's t over the runs. The bands of an
// [Origin] go by the chance inside of the runs alone.
package diff

import (
	"runtime"
	"slices"
	"sync"

	"moontide/analyze/run"
	"moontide/trace"
)

// Options change how sides are compared. The zero value works.
type Options struct {
	Metrics []run.Metric // nil: [DefaultMetrics]
	Seed    uint64       // of the resamples
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
	Metric           run.Metric
	A, B             trace.Opt[float64]
	RunsA            []trace.Opt[float64] // of each run
	RunsB            []trace.Opt[float64]
	Difference       trace.Opt[float64]  // B - A
	Relative         trace.Opt[float64]  // B / A - 1; absent where A is not positive
	Interval         trace.Opt[Interval] // of Difference
	RelativeInterval trace.Opt[Interval]
	// Rising says that the values rise through the run on both sides, as in a
	// queue that grows: the intervals are those of a difference that adds up.
	Rising bool
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
		return int(d.Metric.Better)
	}
	return -int(d.Metric.Better)
}

// ByRuns reports whether the intervals go by the values of the runs alone: there
// are enough of them on both sides.
func (c *Comparison) ByRuns() bool { return len(c.A) >= enoughRuns && len(c.B) >= enoughRuns }

// Of compares side B with side A, each of one run or more. All runs must have
// been read with the metrics that are asked for.
func Of(a, b []*Run, opts Options) *Comparison {
	if opts.Metrics == nil {
		opts.Metrics = DefaultMetrics()
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
func difference(m run.Metric, a, b side, draws []weights) Difference {
	d := Difference{Metric: m, RunsA: a.values(m), RunsB: b.values(m)}
	statA, statB := a.statistic(m), b.statistic(m)
	d.A, d.B = estimate(d.RunsA, statA), estimate(d.RunsB, statB)
	if !d.A.Set || !d.B.Set {
		return d
	}
	d.Difference = trace.Some(d.B.Value - d.A.Value)
	if d.A.Value > 0 {
		d.Relative = trace.Some(d.B.Value/d.A.Value - 1)
	}
	between := newContrast(d, statA, statB, draws)
	d.Interval = between.interval(d.Difference.Value, 1, 1, func(a, b float64) float64 { return b - a })
	if d.Relative.Set {
		d.RelativeInterval = between.interval(d.Relative.Value, d.B.Value/d.A.Value, 1/d.A.Value, func(a, b float64) float64 { return b/a - 1 })
	}
	d.Rising = between.growth.set
	return d
}

// contrast is what intervals of a difference are made of.
type contrast struct {
	runsA, runsB runs
	a, b         statistic
	draws        []weights
	growth       growth
}

func newContrast(d Difference, a, b statistic, draws []weights) contrast {
	c := contrast{runsA: d.RunsA, runsB: d.RunsB, a: a, b: b, draws: draws}
	if a.rising != nil && b.rising != nil {
		c.growth = growthOf(a.rising.sample, b.rising.sample)
	}
	return c
}

// interval is that of a value which is (B - times A) * unit, or of either.
func (c contrast) interval(value, times, unit float64, either func(a, b float64) float64) (found trace.Opt[Interval]) {
	switch {
	case len(c.runsA) >= enoughRuns && len(c.runsB) >= enoughRuns:
		return trace.Some(about(value, welch(c.runsA, c.runsB, times)*unit))
	case c.growth.set && c.a.rising.known && c.b.rising.known:
		parts := c.a.rising.parts()
		for i, part := range c.b.rising.parts() {
			parts[i] = (parts[i] + part) / 2
		}
		found = trace.Some(about(value, c.growth.reach(parts)*unit))
	case !c.growth.set && c.a.known && c.b.known:
		found = intervalOf(value, c.draws, func(w *weights) float64 { return either(c.a.of(w), c.b.of(w)) })
	}
	return noNarrower(found, value, spreadOfRuns(c.runsA, c.runsB, times)*unit)
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
