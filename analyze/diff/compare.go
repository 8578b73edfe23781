package diff

import (
	"slices"
	"sync"

	"moontide/analyze/run"
	"moontide/trace"
)

// Options configures a comparison. The zero value works.
type Options struct {
	// Metrics defaults to [DefaultMetrics]. If a run has sessions or abandoned requests,
	// they are followed by those of sessions and the share of abandoned requests. If an answer of either side began with
	// reasoning, those of TTFT are followed by the same ones of TTFVT.
	Metrics   []run.Metric
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
	Warnings    []string    // what may spoil the comparison
	Changes     []Change    // settings that differ
	Paired      bool        // both sides sent the same requests, row by row
	Differences []Difference
	// Requests holds the per-request differences, Attributions their breakdown by
	// kind of request. Both are empty unless the sides are paired.
	Requests     []Requests
	Attributions []Attribution
	// Prediction is set if the sides are paired and only one of them is simulated. The
	// Attributions are then by load and by what the server had to compute.
	Prediction *Prediction
	// Pairs is the number of rows completed on both sides; OnlyA and OnlyB are on
	// one.
	Pairs, OnlyA, OnlyB int
}

// Difference is the difference of one metric between B and A.
type Difference struct {
	Metric run.Metric
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
	// Rising is set if the latency rises through the run on both sides, as in a
	// growing queue, which the intervals account for.
	Rising bool
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
	for _, d := range c.Differences {
		if d.Metric.Key == key {
			return d, true
		}
	}
	return Difference{}, false
}

// DefaultMetrics returns rates, shares, and statistics of the latencies that vLLM's
// benchmark reports.
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

// sometimes returns the metrics that are compared by default if a run has sessions or
// abandoned requests.
func sometimes() (all []run.Metric) {
	for _, key := range []string{"abandoned_share", "failed_sessions", "sessions_per_hour", "mean_session_duration_s", "median_session_duration_s", "p99_session_duration_s"} {
		all = append(all, run.MustMetric(key))
	}
	return all
}

// withMeasured appends those of sometimes that are not 0 in a run of a side.
func withMeasured(metrics []run.Metric, a, b []*Run) []run.Metric {
	all := slices.Clone(metrics)
	for _, m := range sometimes() {
		named := slices.ContainsFunc(metrics, func(other run.Metric) bool { return other.Key == m.Key })
		if !named && slices.ContainsFunc(slices.Concat(a, b), func(r *Run) bool { return r.values[m.Key].Value != 0 }) {
			all = append(all, m)
		}
	}
	return all
}

// withTTFVT inserts the statistics of TTFVT after those of TTFT.
func withTTFVT(metrics []run.Metric) (all []run.Metric) {
	add := func(m run.Metric) {
		if !slices.ContainsFunc(all, func(other run.Metric) bool { return other.Key == m.Key }) {
			all = append(all, m)
		}
	}
	var visible []run.Metric
	for i, m := range metrics {
		add(m)
		if m.Latency == run.TTFT {
			visible = append(visible, run.TTFVT.Metric(m.Statistic))
		}
		if next := i + 1; next == len(metrics) || metrics[next].Latency != run.TTFT {
			for _, m := range visible {
				add(m)
			}
			visible = nil
		}
	}
	return all
}

// Of compares side B with side A, of one or more runs each, which must have been
// read with the metrics in opts.
func Of(a, b []*Run, opts Options) *Comparison {
	if opts.Metrics == nil {
		opts.Metrics = DefaultMetrics()
	}
	opts.Metrics = withMeasured(opts.Metrics, a, b)
	if reasoned := func(r *Run) bool { return r.reasoned }; slices.ContainsFunc(a, reasoned) || slices.ContainsFunc(b, reasoned) {
		opts.Metrics = withTTFVT(opts.Metrics)
	}
	if opts.Resamples <= 0 {
		opts.Resamples = defaultResamples
	}
	c := &Comparison{A: a, B: b, Changes: changes(a, b), Warnings: samePrompts(a, b)}
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
		properties := p.properties()
		if ofB, ok := predicts(a, b); ok && c.Pairs > 0 {
			measured, predicted := sideA, sideB
			if !ofB {
				measured, predicted = sideB, sideA
			}
			model := &compared{p, ofB}
			properties = model.properties()
			c.Prediction = model.prediction(measured, predicted, draws)
		}
		c.Attributions = p.attributions(properties, draws)
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

func difference(m run.Metric, a, b side, draws []weights) Difference {
	d := Difference{Metric: m, RunsA: a.values(m), RunsB: b.values(m)}
	statA, statB := a.statistic(m), b.statistic(m)
	d.A, d.B = estimate(d.RunsA, statA), estimate(d.RunsB, statB)
	d.CountA, d.CountB = a.count(m, statA), b.count(m, statB)
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

// contrast combines both sides. A difference of latencies is multiplied by unit.
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

// estimate returns the value of a side: of a single run, of all records of several
// runs if there is a statistic, else the mean of the runs.
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

func present(values []trace.Opt[float64]) (all []float64) {
	for _, v := range values {
		if v.Set {
			all = append(all, v.Value)
		}
	}
	return all
}

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
