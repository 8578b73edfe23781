package diff

import (
	"math"
	"slices"
	"sort"
)

// item is a value and its stretch.
type item struct {
	value   float64
	stretch uint8
}

// sample holds the values of a side: statistics of a resample are exact and take the
// same time for a million values as for a thousand.
type sample struct {
	items []item // sorted by value
	// before holds the number of preceding items of each stretch, for every
	// stride-th.
	before [][stretches]uint32
	sums   sums
}

// stride is the distance between counts in a sample.
const stride = 256

// sums holds sums by stretch, relative to a middle value to keep
// precision.
type sums struct {
	middle      float64
	counts, sum [stretches]float64
}

func (s *sums) add(stretch uint8, value float64) {
	s.counts[stretch]++
	s.sum[stretch] += value - s.middle
}

func (s *sums) known() bool { return positive(&s.counts) >= minStretches }

func positive(values *[stretches]float64) (n int) {
	for _, v := range values {
		if v > 0 {
			n++
		}
	}
	return n
}

func (s *sums) totals(w *weights) (n, sum float64) {
	for i, times := range w {
		t := float64(times)
		n += t * s.counts[i]
		sum += t * s.sum[i]
	}
	return n, sum
}

// mean returns NaN if there are no values.
func (s *sums) mean(w *weights) float64 {
	n, sum := s.totals(w)
	return s.middle + sum/n
}

// newSample takes ownership of items.
func newSample(items []item) *sample {
	slices.SortFunc(items, func(a, b item) int { // faster than cmp.Compare, which handles NaN
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
	s := &sample{items: items, before: make([][stretches]uint32, 0, len(items)/stride+1)}
	if len(items) > 0 {
		s.sums.middle = items[len(items)/2].value
	}
	var counts [stretches]uint32
	for i, it := range items {
		if i%stride == 0 {
			s.before = append(s.before, counts)
		}
		counts[it.stretch]++
		s.sums.add(it.stretch, it.value)
	}
	return s
}

// quantile interpolates linearly between closest ranks.
func (s *sample) quantile(p float64, w *weights) float64 {
	n, _ := s.sums.totals(w)
	if n == 0 {
		return math.NaN()
	}
	rank := p * (n - 1)
	below := math.Floor(rank)
	low, next := s.at(below, w)
	high := low
	// The next rank has the same item if the resample repeats it often enough.
	if rank > below && next <= below+1 {
		high, _ = s.at(below+1, w)
	}
	return low + (rank-below)*(high-low)
}

// at returns the value at a rank, and the rank after the last copy of its item.
func (s *sample) at(rank float64, w *weights) (value, next float64) {
	ahead := func(i int) (n float64) {
		for k, times := range w {
			n += float64(times) * float64(s.before[i][k])
		}
		return n
	}
	low := max(sort.Search(len(s.before), func(i int) bool { return ahead(i) > rank })-1, 0) // the last at or below the rank
	next = ahead(low)
	for _, it := range s.items[low*stride:] {
		if next += float64(w[it.stretch]); next > rank {
			return it.value, next
		}
	}
	return s.items[len(s.items)-1].value, next
}

// countsIn counts the items of each stretch with ranks from from to to-1.
func (s *sample) countsIn(from, to int) (counts [stretches]float64) {
	for _, it := range s.items[from:to] {
		counts[it.stretch]++
	}
	return counts
}

// quantileStatistic is known if enough stretches have a value beyond the quantile,
// on the side with fewer of them.
func (s *sample) quantileStatistic(p float64) statistic {
	edge := int(math.Round(p * float64(len(s.items))))
	below, above := s.countsIn(0, edge), s.countsIn(edge, len(s.items))
	return statistic{
		of:    func(w *weights) float64 { return s.quantile(p, w) },
		known: s.sums.known() && min(positive(&below), positive(&above)) >= minEvents,
	}
}

func (s *sample) meanStatistic() statistic {
	return statistic{of: s.sums.mean, known: s.sums.known()}
}
