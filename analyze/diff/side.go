package diff

import (
	"math"
	"slices"
	"sync"
	"time"

	"moontide/analyze/measure"
	"moontide/trace"
)

// side holds the runs of one side, and a sample of each latency, created on first
// use. Rows from first to last are cut into stretches.
type side struct {
	runs        []*Run
	first, last int
	samples     map[measure.Latency]func() *sample
}

// newSides returns two sides; paired ones have the stretches of all rows of both.
func newSides(a, b []*Run, paired bool) (sideA, sideB side) {
	if paired {
		both := slices.Concat(a, b)
		return newSide(a, both), newSide(b, both)
	}
	return newSide(a, a), newSide(b, b)
}

func newSide(runs, stretched []*Run) side {
	s := side{runs: runs, first: math.MaxInt, samples: map[measure.Latency]func() *sample{}}
	for _, r := range stretched {
		if n := len(r.requests); n > 0 {
			s.first, s.last = min(s.first, r.requests[0].Row), max(s.last, r.requests[n-1].Row)
		}
	}
	for _, l := range measure.Latencies {
		if l == measure.ITLPerToken { // gaps per token are not kept
			continue
		}
		s.samples[l] = sync.OnceValue(func() *sample { return newSample(s.items(l)) })
	}
	return s
}

func (s side) stretch(row int) uint8 {
	return uint8((stretches*(row-s.first+1) - 1) / (s.last - s.first + 1))
}

// requests yields the requests of all runs.
func (s side) requests(yield func(*request) bool) {
	for _, r := range s.runs {
		for i := range r.requests {
			if !yield(&r.requests[i]) {
				return
			}
		}
	}
}

func (s side) items(l measure.Latency) (items []item) {
	if l == measure.ITL {
		for _, r := range s.runs {
			for _, gap := range r.gaps {
				items = append(items, item{gap.ms, s.stretch(gap.row)})
			}
		}
		return items
	}
	for q := range s.requests {
		if v := q.latency(l); v.Set {
			items = append(items, item{v.Value, s.stretch(q.Row)})
		}
	}
	return items
}

func (s side) values(m measure.Metric) (all []trace.Opt[float64]) {
	for _, r := range s.runs {
		all = append(all, m.Value(r.Result))
	}
	return all
}

// count returns the number of values behind an estimate.
func (s side) count(m measure.Metric, stat statistic) (total int) {
	least := math.MaxInt
	for _, r := range s.runs {
		n := m.Count(r.Result)
		total += n
		least = min(least, n)
	}
	if stat.of == nil {
		return least
	}
	return total
}

// statistic returns a metric as a function of the resample, if it is one.
func (s side) statistic(m measure.Metric) statistic {
	sampleOf := s.samples[m.Latency]
	switch {
	case m.PerSecond != nil:
		return s.rate(m.PerSecond)
	case m.PartOf != nil:
		return s.share(m.PartOf)
	case sampleOf == nil || !m.Latency.OfCompleted():
		return statistic{}
	case m.Statistic.IsQuantile:
		return sampleOf().quantileStatistic(m.Statistic.P)
	case m.Statistic.Key == measure.Mean.Key:
		return sampleOf().meanStatistic()
	}
	return statistic{}
}

func (s side) share(of func(q *measure.Request) (part, whole float64)) statistic {
	var part, whole [stretches]float64
	for q := range s.requests {
		stretch := s.stretch(q.Row)
		p, w := of(&q.Request)
		part[stretch] += p
		whole[stretch] += w
	}
	return ratio(part, whole)
}

// rate cuts the time of each run, not its rows, into stretches.
func (s side) rate(of func(q *measure.Request) (atEnd, streamed float64)) statistic {
	var part, whole [stretches]float64
	for _, r := range s.runs {
		if r.Duration <= 0 {
			continue
		}
		position := func(at time.Duration) float64 { return stretches * float64(at-r.From) / float64(r.Duration) }
		for i := range r.requests {
			q := &r.requests[i]
			atEnd, streamed := of(&q.Request)
			part[max(0, min(int(position(q.Done)), stretches-1))] += atEnd
			spread(&part, position(q.First), position(q.Last), streamed)
		}
		for i := range whole {
			whole[i] += r.Duration.Seconds() / stretches
		}
	}
	return ratio(part, whole)
}

// spread adds n evenly between two positions. Parts outside the run are dropped.
func spread(in *[stretches]float64, from, to, n float64) {
	to = max(to, from+1e-9)
	for i := max(0, int(from)); i < stretches && float64(i) < to; i++ {
		in[i] += n * (min(to, float64(i+1)) - max(from, float64(i))) / (to - from)
	}
}

// ratio returns the ratio of two sums. It is known if enough stretches have a part
// above 0, and enough have a part below the whole.
func ratio(part, whole [stretches]float64) statistic {
	var rest [stretches]float64
	for i := range part {
		rest[i] = math.Abs(whole[i] - part[i])
	}
	return statistic{
		known: min(positive(&part), positive(&rest)) >= minEvents,
		of: func(w *weights) float64 {
			sumPart, sumWhole := 0., 0.
			for i, times := range w {
				sumPart += float64(times) * part[i]
				sumWhole += float64(times) * whole[i]
			}
			return sumPart / sumWhole
		},
	}
}
