package diff

import (
	"math"
	"slices"
	"sync"

	"moontide/analyze/measure"
	"moontide/analyze/slo"
	"moontide/trace"
)

// Options configures a comparison. The zero value works.
type Options struct {
	// Metrics defaults to those of [measure.CompareAlways]. They are followed by those of sessions, of
	// abandoned requests and of reasoning if a run has any.
	Metrics   []measure.Metric
	Seed      uint64 // seed of the bootstrap resamples
	Resamples int    // default: 2,000
}

const defaultResamples = 2000

// Level is the confidence level of every interval.
const Level = 0.95

// Comparison holds the differences between side B and side A.
type Comparison struct {
	A, B        []*Run
	Objections  []Objection // reasons not to compare the sides
	Changes     []Change    // settings that differ
	Paired      bool        // both sides sent the same requests, row by row
	Differences []Difference
	Requests    []Requests // per-request differences, if the sides are paired
	// Pairs is the number of rows completed on both sides; OnlyA and OnlyB are on
	// one.
	Pairs, OnlyA, OnlyB int
}

// Difference is the difference of one metric between B and A.
type Difference struct {
	Metric measure.Metric
	A, B   trace.Opt[float64]
	RunsA  []trace.Opt[float64] // by run
	RunsB  []trace.Opt[float64]
	// CountA and CountB are the numbers of values that a latency was computed from:
	// of all runs or, for a mean of the runs, of the run with the fewest.
	CountA, CountB   int
	Difference       trace.Opt[float64]  // B - A
	Relative         trace.Opt[float64]  // B / A - 1; absent if A is not positive
	Interval         trace.Opt[Interval] // for Difference
	RelativeInterval trace.Opt[Interval]
}

// Significant reports whether the interval is known and excludes zero.
func (d Difference) Significant() bool { return d.Interval.Set && !d.Interval.Value.Has(0) }

// Better returns 1 if B is better, -1 if it is worse, and 0 if that is not known.
func (d Difference) Better() int {
	switch {
	case !d.Significant():
		return 0
	case d.Difference.Value > 0:
		return int(d.Metric.Better)
	}
	return -int(d.Metric.Better)
}

// ByRuns reports whether the intervals are computed from the run values alone.
func (c *Comparison) ByRuns() bool { return len(c.A) >= enoughRuns && len(c.B) >= enoughRuns }

// Find returns the difference of a metric.
func (c *Comparison) Find(key string) (Difference, bool) {
	i := slices.IndexFunc(c.Differences, func(d Difference) bool { return d.Metric.Key == key })
	if i < 0 {
		return Difference{}, false
	}
	return c.Differences[i], true
}

// withMeasured appends the metrics that are compared if a run has any.
func withMeasured(metrics []measure.Metric, runs []*Run) []measure.Metric {
	all := slices.Clone(metrics)
	for _, m := range measure.MetricsToCompare(measure.CompareIfAboveZero) {
		named := slices.ContainsFunc(metrics, func(other measure.Metric) bool { return other.Key == m.Key })
		measured := func(r *Run) bool {
			return m.Value(r.Result).Value != 0 && (m.Latency != measure.TTFVT || r.Result.Reasoned > 0)
		}
		if !named && slices.ContainsFunc(runs, measured) {
			all = append(all, m)
		}
	}
	return all
}

// Of compares side B with side A, of one or more runs each.
func Of(a, b []*Run, opts Options) *Comparison {
	if opts.Metrics == nil {
		opts.Metrics = measure.MetricsToCompare(measure.CompareAlways)
	}
	opts.Metrics = withMeasured(opts.Metrics, slices.Concat(a, b))
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
		c.pair(sideA, sideB, draws)
	}
	return c
}

func inParallel(n int, do func(i int)) {
	var work sync.WaitGroup
	for i := range n {
		work.Go(func() { do(i) })
	}
	work.Wait()
}

func difference(m measure.Metric, a, b side, draws []weights) Difference {
	d := Difference{Metric: m, RunsA: a.values(m), RunsB: b.values(m)}
	statA, statB := a.statistic(m), b.statistic(m)
	d.A, d.B = estimate(m, d.RunsA, statA), estimate(m, d.RunsB, statB)
	d.CountA, d.CountB = a.count(m, statA), b.count(m, statB)
	if !d.A.Set || !d.B.Set {
		return d
	}
	runsA, runsB := present(d.RunsA), present(d.RunsB)
	interval := func(value, times, unit float64, of func(a, b float64) float64) trace.Opt[Interval] {
		if len(runsA) >= enoughRuns && len(runsB) >= enoughRuns {
			around := byRuns(value/unit, runsA, runsB, times)
			return trace.Some(Interval{around.Low * unit, around.High * unit})
		}
		both := statistic{known: statA.known && statB.known, of: func(w *weights) float64 { return of(statA.of(w), statB.of(w)) }}
		return both.interval(value, draws)
	}
	d.Difference = trace.Some(d.B.Value - d.A.Value)
	d.Interval = interval(d.Difference.Value, 1, 1, func(a, b float64) float64 { return b - a })
	if d.A.Value > 0 {
		ratio := d.B.Value / d.A.Value
		d.Relative = trace.Some(ratio - 1)
		d.RelativeInterval = interval(ratio-1, ratio, 1/d.A.Value, func(a, b float64) float64 { return b/a - 1 })
	}
	return d
}

// estimate returns the value of a side: of a single run, of all records of several
// runs if it is a statistic of their requests, else the mean of the runs.
func estimate(m measure.Metric, runs []trace.Opt[float64], s statistic) trace.Opt[float64] {
	var all mean
	for _, v := range runs {
		if !v.Set {
			return v
		}
		all.add(v)
	}
	if len(runs) > 1 && s.of != nil && m.PerSecond == nil {
		return trace.Some(s.of(&once))
	}
	return all.value()
}

func present(values []trace.Opt[float64]) (all []float64) {
	for _, v := range values {
		if v.Set {
			all = append(all, v.Value)
		}
	}
	return all
}

// Judge applies a gate to side B, or to its change from side A. A change that is not
// significant counts as 0, and one without an interval as measured.
func Judge(g slo.Gate, d Difference) slo.Judgement {
	switch {
	case !d.B.Set:
		return g.Fail("not measured in B")
	case g.Kind == slo.OfValue:
		return g.JudgeValue(d.B.Value, d.B.Value, d.CountB, "")
	case !d.A.Set:
		return g.Fail("not measured in A")
	}
	value, remark := d.Difference.Value, ""
	if g.Kind == slo.OfRelativeChange && value != 0 {
		value /= math.Abs(d.A.Value) // infinite if A is 0
	}
	countsAs := value
	switch {
	case d.Interval.Set && !d.Significant():
		countsAs, remark = 0, "not significant, counts as no change"
	case !d.Interval.Set && value != 0:
		remark = "no confidence interval"
	}
	return g.JudgeValue(value, countsAs, min(d.CountA, d.CountB), remark)
}
