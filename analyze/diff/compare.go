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
