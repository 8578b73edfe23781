package diff

import (
	"sync"

	"moontide/analyze/run"
	"moontide/trace"
)

// Options change how sides are compared. The zero value works.
type Options struct {
	Metrics   []run.Metric // nil: [DefaultMetrics]
	Seed      uint64       // of the bootstrap resamples
	Resamples int          // 0: 2,000
}

const defaultResamples = 2000

// Level is the confidence of every interval.
const Level = 0.95

// Comparison is how side B differs from side A.
type Comparison struct {
	A, B        []*Run
	Objections  []Objection // reasons not to compare the sides
	Changes     []Change    // settings in which the runs differ
	Paired      bool        // both sides had the same requests, row by row
	Differences []Difference
	// Requests are the differences of single requests and Attributions the kinds of
	// requests that they come from. Both are empty unless the sides are paired.
	Requests     []Requests
	Attributions []Attribution
	// Pairs counts the rows that were completed on both sides, OnlyA and OnlyB
	// those on one.
	Pairs, OnlyA, OnlyB int
}

// Difference is how a metric of B differs from that of A. What was not measured is
// absent.
type Difference struct {
	Metric           run.Metric
	A, B             trace.Opt[float64]
	RunsA            []trace.Opt[float64] // of each run
	RunsB            []trace.Opt[float64]
	Difference       trace.Opt[float64]  // B - A
	Relative         trace.Opt[float64]  // B / A - 1; absent where A is not positive
	Interval         trace.Opt[Interval] // of Difference
	RelativeInterval trace.Opt[Interval]
	// Rising says that the latency rises through the run on both sides, as in a
	// growing queue, and that the intervals allow for it.
	Rising bool
}

// Significant reports whether the interval of the difference is known and excludes
// zero.
func (d Difference) Significant() bool { return d.Interval.Set && !d.Interval.Value.Has(0) }

// Better is 1 where B is better, -1 where it is worse, and 0 where neither holds or
// the difference is not significant.
func (d Difference) Better() int {
	switch {
	case !d.Significant():
		return 0
	case d.Difference.Value > 0:
		return int(d.Metric.Better)
	}
	return -int(d.Metric.Better)
}

// ByRuns reports whether the intervals are computed from the run values alone:
// both sides have at least three runs.
func (c *Comparison) ByRuns() bool { return len(c.A) >= enoughRuns && len(c.B) >= enoughRuns }

// Find returns the difference of a metric.
func (c *Comparison) Find(key string) (Difference, bool) {
	for _, d := range c.Differences {
		if d.Metric.Key == key {
			return d, true
		}
	}
	return Difference{}, false
}

// DefaultMetrics are the rates, mean, median and p99 of the latencies that vLLM's
// benchmark reports, and the shares of failed requests and of cached tokens.
func DefaultMetrics() (all []run.Metric) {
	for _, key := range []string{"request_throughput", "output_throughput", "total_token_throughput", "failed_share", "cached_share"} {
		all = append(all, run.MustMetric(key))
	}
	for _, l := range run.VLLMLatencies {
		for _, s := range []run.Statistic{run.Mean, run.Median, run.Percentile(99)} {
			all = append(all, l.Metric(s))
		}
	}
	return all
}

// Of compares side B with side A, each of one run or more. All runs must have
// been read with the metrics in opts.
func Of(a, b []*Run, opts Options) *Comparison {
	if opts.Metrics == nil {
		opts.Metrics = DefaultMetrics()
	}
	if opts.Resamples <= 0 {
		opts.Resamples = defaultResamples
	}
	c := &Comparison{A: a, B: b, Changes: changes(a, b)}
	c.Objections, c.Paired = comparability(a, b)
	sideA, sideB := newSides(a, b, c.Paired)
	draws := drawAll(opts.Seed, opts.Resamples)
	c.Differences = make([]Difference, len(opts.Metrics))
	inParallel(len(opts.Metrics), func(i int) {
		c.Differences[i] = difference(opts.Metrics[i], sideA, sideB, draws)
	})
	if c.Paired {
		p := pairsOf(sideA, sideB)
		c.Pairs, c.OnlyA, c.OnlyB = len(p.pairs), p.onlyA, p.onlyB
		c.Requests = p.differences(draws)
		c.Attributions = p.attributions(draws)
	}
	return c
}

// inParallel calls do with 0 to n-1 and waits for all calls.
func inParallel(n int, do func(i int)) {
	var work sync.WaitGroup
	for i := range n {
		work.Go(func() { do(i) })
	}
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
	runsA, runsB := present(d.RunsA), present(d.RunsB)
	byRuns := len(runsA) >= enoughRuns && len(runsB) >= enoughRuns
	step := queueingStep(statA.latency, statB.latency)
	interval := func(value, times, unit float64, of func(a, b float64) float64) trace.Opt[Interval] {
		runs := runsHalfWidth(runsA, runsB, times) * unit
		if byRuns {
			return trace.Some(around(value, runs))
		}
		return contrast(statA, statB, unit, of).interval(value, runs, step, draws)
	}
	d.Difference, d.Rising = trace.Some(d.B.Value-d.A.Value), step.Set
	d.Interval = interval(d.Difference.Value, 1, 1, func(a, b float64) float64 { return b - a })
	if d.A.Value > 0 {
		ratio := d.B.Value / d.A.Value
		d.Relative = trace.Some(ratio - 1)
		d.RelativeInterval = interval(ratio-1, ratio, 1/d.A.Value, func(a, b float64) float64 { return b/a - 1 })
	}
	return d
}

// contrast is a statistic of both sides together, in which a difference of
// latencies counts times unit.
func contrast(a, b statistic, unit float64, of func(a, b float64) float64) statistic {
	return statistic{
		known: a.known && b.known, knownRising: a.knownRising && b.knownRising,
		of: func(w *weights) float64 { return of(a.of(w), b.of(w)) },
		parts: func() *[stretches]float64 {
			parts := a.parts()
			for i, part := range b.parts() {
				parts[i] = unit * (parts[i] + part) / 2
			}
			return parts
		},
	}
}

// estimate is the value of a side: that of a single run; for several runs the
// statistic of all their records, or the mean of the runs if there is none.
func estimate(runs []trace.Opt[float64], s statistic) trace.Opt[float64] {
	var m mean
	for _, v := range runs {
		if !v.Set {
			return v
		}
		m.add(v)
	}
	if len(runs) > 1 && s.of != nil {
		return trace.Some(s.of(&once))
	}
	return m.value()
}

// present are the values that are set.
func present(values []trace.Opt[float64]) (all []float64) {
	for _, v := range values {
		if v.Set {
			all = append(all, v.Value)
		}
	}
	return all
}

// mean accumulates a mean of the values that are set.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v trace.Opt[float64]) {
	if v.Set {
		m.sum += v.Value
		m.n++
	}
}

func (m *mean) value() trace.Opt[float64] {
	return trace.Opt[float64]{Value: m.sum / float64(max(1, m.n)), Set: m.n > 0}
}
