package diff

import (
	"math"
	"sync"

	"moontide/analyze/run"
	"moontide/trace"
)

// side holds the runs of one side, and a sample of each latency, created on first
// use.
type side struct {
	runs    []*Run
	rows    rows
	samples map[run.Latency]func() *sample
}

// newSides returns two sides; paired ones share the rows of both.
func newSides(a, b []*Run, paired bool) (sideA, sideB side) {
	if paired {
		both := rowsOf(append(a[:len(a):len(a)], b...))
		return newSide(a, both), newSide(b, both)
	}
	return newSide(a, rowsOf(a)), newSide(b, rowsOf(b))
}

func newSide(runs []*Run, all rows) side {
	s := side{runs: runs, rows: all, samples: map[run.Latency]func() *sample{}}
	for _, l := range run.Latencies {
		s.samples[l] = sync.OnceValue(func() *sample { return newSample(s.items(l)) })
	}
	return s
}

func (s side) each(do func(r *Run, q *request, index int)) {
	for _, r := range s.runs {
		index := 0
		for i := range r.requests {
			for s.rows[index] < r.requests[i].row {
				index++
			}
			do(r, &r.requests[i], index)
		}
	}
}

func (s side) items(l run.Latency) []item {
	n := 0
	for _, r := range s.runs {
		if l == run.ITL {
			n += len(r.gaps.values)
		} else {
			n += len(r.requests)
		}
	}
	items := make([]item, 0, n)
	s.each(func(r *Run, q *request, index int) {
		stretch := s.rows.stretch(index)
		if l == run.ITL {
			for _, gap := range r.gaps.values[q.gapsFrom:q.gapsTo] {
				items = append(items, item{gap, stretch})
			}
		} else if v := q.latency(l); v.Set {
			items = append(items, item{v.Value, stretch})
		}
	})
	return items
}

func (s side) values(m run.Metric) (all []trace.Opt[float64]) {
	for _, r := range s.runs {
		all = append(all, r.values[m.Key])
	}
	return all
}

// count returns the number of values behind an estimate.
func (s side) count(m run.Metric, stat statistic) (total int) {
	least := math.MaxInt
	for _, r := range s.runs {
		total += r.counts[m.Key]
		least = min(least, r.counts[m.Key])
	}
	if stat.of == nil {
		return least
	}
	return total
}

// means returns the mean of a latency for each run that has any.
func (s side) means(l run.Latency) (all []float64) {
	for _, r := range s.runs {
		var m mean
		for i := range r.requests {
			m.add(r.requests[i].latency(l))
		}
		if v := m.value(); v.Set {
			all = append(all, v.Value)
		}
	}
	return all
}

// statistic returns a metric as a function of the resample, if it is one.
func (s side) statistic(m run.Metric) statistic {
	sampleOf := s.samples[m.Latency]
	switch {
	case m.Key == "request_throughput":
		return s.rate(func(l *load) *[stretches]float64 { return &l.requests })
	case m.Key == "output_throughput":
		return s.rate(func(l *load) *[stretches]float64 { return &l.output })
	case m.Key == "total_token_throughput":
		return s.rate(func(l *load) *[stretches]float64 { return &l.tokens })
	case m.Key == "request_goodput":
		return s.rate(func(l *load) *[stretches]float64 { return &l.good })
	case m.Key == "failed_share":
		return s.share(func(q *request) (part, whole float64) {
			return count(q.failed), count(q.failed || q.completed || q.abandoned)
		})
	case m.Key == "abandoned_share":
		return s.share(func(q *request) (part, whole float64) {
			return count(q.abandoned), count(q.failed || q.completed || q.abandoned)
		})
	case m.Key == "cached_share":
		return s.share(func(q *request) (part, whole float64) {
			return float64(q.cached) * count(q.completed), float64(q.input) * count(q.completed)
		})
	case sampleOf == nil || !m.Latency.OfCompleted():
		return statistic{}
	case m.Statistic.IsQuantile:
		return sampleOf().quantileStatistic(m.Statistic.P)
	case m.Statistic.Key == run.Mean.Key:
		return sampleOf().meanStatistic()
	case m.Statistic.Key == run.Std.Key:
		return sampleOf().stdStatistic()
	}
	return statistic{}
}

func count(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (s side) share(of func(q *request) (part, whole float64)) statistic {
	var part, whole [stretches]float64
	s.each(func(_ *Run, q *request, index int) {
		stretch := s.rows.stretch(index)
		p, w := of(q)
		part[stretch] += p
		whole[stretch] += w
	})
	return ratio(part, whole)
}

func (s side) rate(of func(l *load) *[stretches]float64) statistic {
	var part, whole [stretches]float64
	for _, r := range s.runs {
		for i, n := range of(&r.load) {
			part[i] += n
			whole[i] += r.load.seconds
		}
	}
	return ratio(part, whole)
}
