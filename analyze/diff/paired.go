package diff

import (
	"slices"
	"time"

	"moontide/analyze/run"
	"moontide/trace"
)

// Requests summarizes the per-request differences B - A of a latency.
type Requests struct {
	Latency      run.Latency // TTFT, TPOT or E2EL
	Count        int
	Mean, Median float64
	MeanInterval trace.Opt[Interval]
	// MedianInterval is for the median of the differences.
	MedianInterval trace.Opt[Interval]
	Lower, Higher  int // requests whose latency is lower or higher in B
	// Points are the latencies of up to 4,096 pairs, evenly spaced in the trace.
	Points []Point
}

// Point is a request's latency on both sides.
type Point struct{ A, B float64 }

const maxPoints = 4096

var pairedLatencies = [3]run.Latency{run.TTFT, run.TPOT, run.E2EL}

// pair is a row that was sent on both sides.
type pair struct {
	stretch uint8
	isl     int
	turn    trace.Opt[int]
	due     time.Duration
	a, b    rowMeans
}

// rowMeans holds the means of a row over the runs of a side.
type rowMeans struct {
	completed      bool // in any run
	cached         mean // share of the prompt
	cachedTokens   mean
	uncachedTokens mean
	inFlight       mean // when it was sent, including itself
	latencies      [len(pairedLatencies)]mean
}

func (p *pair) difference(k int) trace.Opt[float64] {
	a, b := p.a.latencies[k].value(), p.b.latencies[k].value()
	return trace.Opt[float64]{Value: b.Value - a.Value, Set: a.Set && b.Set}
}

// pairs holds the rows that were completed on both sides, in order.
type pairs struct {
	pairs        []pair
	onlyA, onlyB int
	// Indexed like pairedLatencies: the queueingStep, and the mean of each run.
	steps        [len(pairedLatencies)]trace.Opt[float64]
	runsA, runsB [len(pairedLatencies)][]float64
}

func pairsOf(a, b side) (p pairs) {
	for k, l := range pairedLatencies {
		p.steps[k] = queueingStep(a.samples[l](), b.samples[l]())
		p.runsA[k], p.runsB[k] = a.means(l), b.means(l)
	}
	all := make([]pair, len(a.rows))
	collect := func(s side, of func(p *pair) *rowMeans) {
		loads := map[*Run]inFlight{}
		for _, r := range s.runs {
			loads[r] = inFlightOf(r.requests)
		}
		s.each(func(r *Run, q *request, index int) {
			if !q.measured {
				return
			}
			row := &all[index]
			m := of(row)
			if !row.a.completed {
				row.stretch, row.isl, row.turn, row.due = s.rows.stretch(index), q.isl, q.turn, q.Due
			}
			m.completed = true
			m.cached.add(q.cachedShare())
			m.cachedTokens.add(trace.Opt[float64]{Value: float64(q.cached), Set: q.cachedKnown})
			m.uncachedTokens.add(trace.Opt[float64]{Value: float64(q.input - q.cached), Set: q.cachedKnown})
			m.inFlight.add(trace.Some(float64(loads[r].at(q.Sent))))
			for k, l := range pairedLatencies {
				m.latencies[k].add(q.latency(l))
			}
		})
	}
	collect(a, func(p *pair) *rowMeans { return &p.a })
	collect(b, func(p *pair) *rowMeans { return &p.b })
	p.pairs = slices.DeleteFunc(all, func(row pair) bool {
		switch {
		case row.a.completed && !row.b.completed:
			p.onlyA++
		case row.b.completed && !row.a.completed:
			p.onlyB++
		}
		return !row.a.completed || !row.b.completed
	})
	return p
}

func (p pairs) differences(draws []weights) []Requests {
	all := make([]Requests, len(pairedLatencies))
	inParallel(len(all), func(k int) {
		r := Requests{Latency: pairedLatencies[k]}
		var items []item
		step := (len(p.pairs) + maxPoints - 1) / maxPoints
		for i := range p.pairs {
			d := p.pairs[i].difference(k)
			if !d.Set {
				continue
			}
			if i%step == 0 {
				r.Points = append(r.Points, Point{p.pairs[i].a.latencies[k].value().Value, p.pairs[i].b.latencies[k].value().Value})
			}
			items = append(items, item{d.Value, p.pairs[i].stretch})
			if d.Value < 0 {
				r.Lower++
			} else if d.Value > 0 {
				r.Higher++
			}
		}
		if r.Count = len(items); r.Count > 0 {
			p.estimate(&r, k, newSample(items), draws)
		}
		all[k] = r
	})
	return all
}

// estimate sets the mean, the median and their intervals. With enough runs on both
// sides, the interval of the mean comes from the run means alone.
func (p pairs) estimate(r *Requests, k int, s *sample, draws []weights) {
	a, b := p.runsA[k], p.runsB[k]
	runs := runsHalfWidth(a, b, 1)
	mean, median := s.meanStatistic(), s.quantileStatistic(0.5)
	r.Mean, r.Median = mean.of(&once), median.of(&once)
	switch {
	case !mean.known:
	case min(len(a), len(b)) >= enoughRuns:
		r.MeanInterval = trace.Some(around(r.Mean, runs))
	default:
		r.MeanInterval = mean.interval(r.Mean, runs, p.steps[k], draws)
	}
	if median.known {
		r.MedianInterval = median.interval(r.Median, runs, p.steps[k], draws)
	}
}
