package diff

import (
	"cmp"
	"slices"
	"time"

	"moontide/analyze/run"
	"moontide/trace"
)

// Requests says how a latency of the same requests differs: B - A of each.
type Requests struct {
	Latency      run.Latency // TTFT, TPOT or E2EL
	Count        int
	Mean, Median float64
	MeanInterval trace.Opt[Interval]
	// MedianInterval is of the median of differences, which is not the difference
	// of medians.
	MedianInterval trace.Opt[Interval]
	Lower, Higher  int // requests whose latency is lower, or higher, in B
}

// pairedLatencies are those that are compared request by request.
var pairedLatencies = [3]run.Latency{run.TTFT, run.TPOT, run.E2EL}

// pair is a row that was completed on both sides.
type pair struct {
	stretch     uint8
	isl         int
	due         time.Duration
	cached      [2]trace.Opt[float64] // share of the prompt, in A and in B
	differences [3]trace.Opt[float64] // B - A of each of pairedLatencies
}

// pairs are all of them, by row.
type pairs struct {
	pairs        []pair
	onlyA, onlyB int
	growth       [3]growth // of pairedLatencies
	runsA, runsB [3]runs   // means of each run
}

// row is a row of one side: the means of its runs.
type row struct {
	row     int
	stretch uint8
	isl     int
	due     time.Duration
	cached  trace.Opt[float64]
	values  [3]trace.Opt[float64]
}

// mean adds up and counts.
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

// rows are those that a run of the side completed.
func (s side) rows() (all []row) {
	type ref struct {
		q       *request
		stretch uint8
	}
	refs := make([]ref, 0, len(s.runs[0].requests)*len(s.runs))
	s.each(func(_ *Run, q *request, stretch uint8) {
		if q.measured {
			refs = append(refs, ref{q, stretch})
		}
	})
	slices.SortStableFunc(refs, func(a, b ref) int { return cmp.Compare(a.q.row, b.q.row) })
	all = make([]row, 0, len(refs)/len(s.runs))
	for len(refs) > 0 {
		first := refs[0]
		r := row{row: first.q.row, stretch: first.stretch, isl: first.q.isl, due: first.q.Due}
		var cached mean
		var values [3]mean
		n := 0
		for ; n < len(refs) && refs[n].q.row == r.row; n++ {
			q := refs[n].q
			cached.add(q.cachedPart())
			for i, l := range pairedLatencies {
				values[i].add(q.latency(l))
			}
		}
		r.cached = cached.value()
		for i := range values {
			r.values[i] = values[i].value()
		}
		all, refs = append(all, r), refs[n:]
	}
	return all
}

func pairsOf(a, b side) (p pairs) {
	for i, l := range pairedLatencies {
		p.growth[i] = growthOf(a.sample(l), b.sample(l))
		p.runsA[i], p.runsB[i] = a.means(l), b.means(l)
	}
	rowsA, rowsB := a.rows(), b.rows()
	p.pairs = make([]pair, 0, min(len(rowsA), len(rowsB)))
	for len(rowsA) > 0 && len(rowsB) > 0 {
		one, other := rowsA[0], rowsB[0]
		switch {
		case one.row < other.row:
			p.onlyA++
			rowsA = rowsA[1:]
			continue
		case one.row > other.row:
			p.onlyB++
			rowsB = rowsB[1:]
			continue
		}
		both := pair{stretch: one.stretch, isl: one.isl, due: one.due, cached: [2]trace.Opt[float64]{one.cached, other.cached}}
		for i := range both.differences {
			both.differences[i] = trace.Opt[float64]{
				Value: other.values[i].Value - one.values[i].Value, Set: one.values[i].Set && other.values[i].Set,
			}
		}
		p.pairs = append(p.pairs, both)
		rowsA, rowsB = rowsA[1:], rowsB[1:]
	}
	p.onlyA += len(rowsA)
	p.onlyB += len(rowsB)
	return p
}

// differences are those of single requests, by latency.
func (p pairs) differences(draws []weights) []Requests {
	all := make([]Requests, len(pairedLatencies))
	inParallel(len(all), func(i int) {
		r := Requests{Latency: pairedLatencies[i]}
		var items []item
		for _, both := range p.pairs {
			d := both.differences[i]
			if !d.Set {
				continue
			}
			items = append(items, item{d.Value, both.stretch})
			if d.Value < 0 {
				r.Lower++
			} else if d.Value > 0 {
				r.Higher++
			}
		}
		if r.Count = len(items); r.Count > 0 {
			s := newSample(items)
			r.Mean, r.MeanInterval = p.measured(i, s.meanStatistic(), true, draws)
			r.Median, r.MedianInterval = p.measured(i, s.quantileStatistic(0.5), false, draws)
		}
		all[i] = r
	})
	return all
}

// measured is the value of a statistic of differences and its interval, if enough
// stretches know of it. Several runs a side have their say, by their means: of a
// mean alone, of a median so far that the interval is no narrower.
func (p pairs) measured(latency int, s statistic, ofMean bool, draws []weights) (float64, trace.Opt[Interval]) {
	value, g := s.of(&once), p.growth[latency]
	a, b := p.runsA[latency], p.runsB[latency]
	if !s.known {
		return value, trace.Opt[Interval]{}
	}
	spread, several := spreadOfRuns(a, b, 1), len(a) >= enoughRuns && len(b) >= enoughRuns
	if several {
		spread = welch(a, b, 1)
	}
	var found trace.Opt[Interval]
	switch {
	case several && ofMean:
		found = trace.Some(about(value, spread))
	case g.set:
		found = trace.Some(about(value, g.reach(s.rising.parts())))
	default:
		found = intervalOf(value, draws, s.of)
	}
	return value, noNarrower(found, value, spread)
}
