package bench

import (
	"cmp"
	"math"
	"slices"
	"time"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/trace/stats"
)

// LegJudgement is what a run shows about objectives.
type LegJudgement struct {
	Judgements []run.Judgement
	// Tightest is the judgement that is closest to failing.
	Tightest run.Judgement
	// Excess is the logarithm of Tightest's value over its limit, below 0 on the passing
	// side, and Error its standard error.
	Excess, Error float64
	// Growth is the number of requests by which the queue grew per second, 0 if it did
	// not: at that load, every objective of latency fails in the end. Then Served is the
	// share of the arriving requests that the system completed meanwhile, and ServedError
	// its relative standard error.
	Growth, Served, ServedError float64
}

// Met reports whether the run met the objectives and its queue did not grow.
func (j *LegJudgement) Met() bool { return j.Growth == 0 && len(run.Failed(j.Judgements)) == 0 }

const (
	noExcess    = 10.0 // of a value that has no logarithm
	otherError  = 0.02 // standard error of the logarithm of what is no latency
	errorBatch  = 20   // batches from which errors are estimated
	growthParts = 10   // parts of a run between which the queue may grow
	leastGrowth = 0.04 // of the arrival rate
)

// Judge judges a recorded run. The error of a run that would give the same result again is
// 0: a trace with its own arrivals in virtual time.
func (c *LoadSearchConfig) Judge(r *Result) (j LegJudgement, err error) {
	records, err := OpenRecording(r.Dir)
	if err != nil {
		return j, err
	}
	defer records.Close()
	var kept []replay.Record
	for rec, err := range records.Records {
		if err != nil {
			return j, err
		}
		if !r.Metrics.Window.Holds(&rec) {
			continue
		}
		rec.Gaps, rec.ChunkTokens, rec.HashIDs, rec.Error = nil, nil, nil, ""
		kept = append(kept, rec)
	}
	slices.SortStableFunc(kept, func(a, b replay.Record) int { return cmp.Compare(a.Ready, b.Ready) })
	for i, g := range c.Gates {
		judged := g.Judge(r.Metrics)
		j.Judgements = append(j.Judgements, judged)
		if excess := excessOf(judged); i == 0 || excess > j.Excess {
			j.Tightest, j.Excess = judged, excess
		}
	}
	if !c.exact() {
		j.Error = errorOf(j.Tightest.Gate.Metric, kept)
	}
	if r.Run.Limits.Closed {
		j.Error = max(j.Error, driftOf(j.Tightest.Gate.Metric, kept))
	} else {
		j.Growth, j.Served, j.ServedError = growth(kept)
	}
	return j, nil
}

// excessOf returns the logarithm of the value over the limit of an upper limit, or of the
// limit over the value of a lower one.
func excessOf(j run.Judgement) float64 {
	g := j.Gate
	ratio := j.Value.Value / g.Limit
	if below := g.Op == run.Less || g.Op == run.AtMost; below == g.Forbidden {
		ratio = 1 / ratio
	}
	excess := math.Log(ratio)
	switch {
	case j.Value.Set && !math.IsNaN(excess):
		return min(max(excess, -noExcess), noExcess)
	case j.Passed:
		return -noExcess
	}
	return noExcess
}

// errorOf returns the standard error of the logarithm of a metric, from the variation
// between batches of consecutive requests, which are nearly independent.
func errorOf(m run.Metric, records []replay.Record) float64 {
	if m.Latency == run.NoLatency || m.Session {
		return otherError
	}
	values := valuesOf(m, records)
	if len(values) < 2*errorBatch {
		return 5 * otherError
	}
	sample := stats.Of(slices.Clone(values))
	if !m.Statistic.IsQuantile {
		mean, spread := batchMean(values, func(v float64) float64 { return v })
		return max(spread/math.Abs(mean), 1e-3)
	}
	at := m.Statistic.Of(sample)
	_, spread := batchMean(values, func(v float64) float64 {
		if v > at {
			return 1
		}
		return 0
	})
	p, n := m.Statistic.P, float64(len(values))
	spread = max(spread, 0.5*math.Sqrt(p*(1-p)/n))
	low, high := sample.Quantile(max(p-spread, 0)), sample.Quantile(min(p+spread, 1))
	if !(low > 0) {
		return 5 * otherError
	}
	return max(math.Log(high/low)/2, 1e-3)
}

// driftOf returns half the difference between the logarithms of a metric in the halves of a
// run. Without drift it is about the error that batches show. It is larger in closed loops
// that are slow to settle: under round-robin routing, a slow engine collects ever more of
// the requests in flight.
func driftOf(m run.Metric, records []replay.Record) float64 {
	values := valuesOf(m, records)
	if m.Session || len(values) < 2*errorBatch {
		return 0
	}
	half := len(values) / 2
	before, after := m.Statistic.Of(stats.Of(values[:half:half])), m.Statistic.Of(stats.Of(values[half:]))
	if drift := math.Abs(math.Log(after/before)) / 2; !math.IsNaN(drift) && !math.IsInf(drift, 0) {
		return drift
	}
	return 0
}

// valuesOf returns the latencies of a metric in the order of the records.
func valuesOf(m run.Metric, records []replay.Record) (values []float64) {
	if m.Latency == run.NoLatency {
		return nil
	}
	for i := range records {
		if v := m.Latency.Of(&records[i]); v.Set && records[i].Class == replay.OK {
			values = append(values, v.Value)
		}
	}
	return values
}

// batchMean returns the mean of f and its standard error.
func batchMean(values []float64, f func(float64) float64) (mean, spread float64) {
	var means [errorBatch]float64
	for i := range means {
		batch := values[i*len(values)/errorBatch : (i+1)*len(values)/errorBatch]
		for _, v := range batch {
			means[i] += f(v) / float64(len(batch))
		}
		mean += means[i] / errorBatch
	}
	for _, m := range means {
		spread += (m - mean) * (m - mean)
	}
	return mean, math.Sqrt(spread / (errorBatch - 1) / errorBatch)
}

// growth returns by how many requests per second the number of requests that are due and
// not done grows while requests arrive, 0 unless it is a clear share of the arrivals, and
// which share of them is served, with its relative error.
func growth(records []replay.Record) (perSecond, served, spread float64) {
	if len(records) < 10*growthParts {
		return 0, 0, 0
	}
	var due, done []time.Duration
	for i := range records {
		due, done = append(due, records[i].Due), append(done, records[i].Done)
	}
	slices.Sort(due)
	slices.Sort(done)
	span := (due[len(due)-1] - due[0]).Seconds()
	if span <= 0 {
		return 0, 0, 0
	}
	const each, first = 20, 2 // samples of a part; the first parts fill the system
	var levels [growthParts]float64
	for i := range growthParts * each {
		at := due[0] + time.Duration((float64(i)+0.5)/(growthParts*each)*span*float64(time.Second))
		arrived, _ := slices.BinarySearch(due, at)
		ended, _ := slices.BinarySearch(done, at)
		levels[i/each] += float64(arrived-ended) / each
	}
	rest := levels[first:]
	slope, slopeError := line(rest)
	perSecond = slope * growthParts / span
	if perSecond < leastGrowth*float64(len(due))/span || slope < 4*slopeError || rest[len(rest)-1] < 1.3*rest[0] {
		return 0, 0, 0
	}
	from := due[0] + time.Duration(span*first/growthParts*float64(time.Second))
	served, spread = servedShare(due, done, from)
	return perSecond, served, spread
}

// servedShare returns how many requests are done for each one that is due from a time to
// the last arrival, and the relative error, from parts of that time.
func servedShare(due, done []time.Duration, from time.Duration) (share, spread float64) {
	const parts = 10
	until := due[len(due)-1]
	before := func(times []time.Duration, part int) float64 {
		n, _ := slices.BinarySearch(times, from+(until-from)*time.Duration(part)/parts)
		return float64(n)
	}
	rate := (before(done, parts) - before(done, 0)) / parts
	for i := range parts {
		e := before(done, i+1) - before(done, i) - rate
		spread += e * e
	}
	return parts * rate / (before(due, parts) - before(due, 0)), math.Sqrt(spread/(parts-1)/parts) / max(rate, 1)
}

// line returns the slope of a regression line through equidistant values, and its standard
// error.
func line(values []float64) (slope, spread float64) {
	n := float64(len(values))
	mean := 0.0
	for _, v := range values {
		mean += v / n
	}
	sxx, sxy := 0.0, 0.0
	for i, v := range values {
		x := float64(i) - (n-1)/2
		sxx, sxy = sxx+x*x, sxy+x*(v-mean)
	}
	slope = sxy / sxx
	residual := 0.0
	for i, v := range values {
		e := v - mean - slope*(float64(i)-(n-1)/2)
		residual += e * e
	}
	return slope, math.Sqrt(residual / (n - 2) / sxx)
}
