package diff

import (
	"maps"
	"slices"

	"moontide/analyze/measure"
	"moontide/trace"
)

// Requests summarizes the per-request differences B - A of a latency.
type Requests struct {
	Latency      measure.Latency // TTFT, TPOT or E2EL
	Count        int
	Mean, Median float64
	MeanInterval trace.Opt[Interval]
	// MedianInterval is for the median of the differences.
	MedianInterval trace.Opt[Interval]
	Lower, Higher  int // requests whose latency is lower or higher in B
}

var pairedLatencies = [3]measure.Latency{measure.TTFT, measure.TPOT, measure.E2EL}

// latencies are those of a row that was completed, as means over the runs of a side.
type latencies [len(pairedLatencies)]mean

func (s side) byRow() map[int]*latencies {
	all := map[int]*latencies{}
	for q := range s.requests {
		if !q.measured() {
			continue
		}
		row := all[q.Row]
		if row == nil {
			row = &latencies{}
			all[q.Row] = row
		}
		for k, l := range pairedLatencies {
			row[k].add(q.latency(l))
		}
	}
	return all
}

// pair compares the rows that were completed on both sides.
func (c *Comparison) pair(a, b side, draws []weights) {
	rowsA, rowsB := a.byRow(), b.byRow()
	both := slices.Sorted(maps.Keys(rowsA))
	both = slices.DeleteFunc(both, func(row int) bool { return rowsB[row] == nil })
	c.Pairs, c.OnlyA, c.OnlyB = len(both), len(rowsA)-len(both), len(rowsB)-len(both)
	c.Requests = make([]Requests, len(pairedLatencies))
	inParallel(len(pairedLatencies), func(k int) {
		r := Requests{Latency: pairedLatencies[k]}
		var items []item
		for _, row := range both {
			inA, inB := rowsA[row][k].value(), rowsB[row][k].value()
			if !inA.Set || !inB.Set {
				continue
			}
			items = append(items, item{inB.Value - inA.Value, a.stretch(row)})
			if inB.Value < inA.Value {
				r.Lower++
			} else if inB.Value > inA.Value {
				r.Higher++
			}
		}
		if r.Count = len(items); r.Count > 0 {
			r.estimate(newSample(items), a.means(r.Latency), b.means(r.Latency), draws)
		}
		c.Requests[k] = r
	})
}

// estimate sets the mean, the median and their intervals. With enough runs on both sides,
// the interval of the mean comes from the run means alone.
func (r *Requests) estimate(s *sample, runsA, runsB []float64, draws []weights) {
	mean, median := s.meanStatistic(), s.quantileStatistic(0.5)
	r.Mean, r.Median = mean.of(&once), median.of(&once)
	r.MeanInterval, r.MedianInterval = mean.interval(r.Mean, draws), median.interval(r.Median, draws)
	if r.MeanInterval.Set && min(len(runsA), len(runsB)) >= enoughRuns {
		r.MeanInterval.Value = byRuns(r.Mean, runsA, runsB, 1)
	}
}

// means returns the mean of a latency for each run that has any.
func (s side) means(l measure.Latency) (all []float64) {
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
