package diff

import (
	"math"
	"slices"
)

// statistic is a number that depends on the resample.
type statistic struct {
	of    func(w *weights) float64 // NaN if there is no value; nil if unknown
	known bool                     // enough stretches have values for a bootstrap interval

	// The remaining fields are for statistics of a latency.
	latency     *sample
	knownRising bool // enough values for an interval in a growing queue
	// parts returns the derivative with respect to a shift of each stretch.
	parts func() *[stretches]float64
}

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

// sums holds sums and squares by stretch, relative to a middle value to keep
// precision.
type sums struct {
	middle               float64
	counts, sum, squares [stretches]float64
}

func (s *sums) add(stretch uint8, value float64) {
	s.counts[stretch]++
	s.sum[stretch] += value - s.middle
	s.squares[stretch] += (value - s.middle) * (value - s.middle)
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

func (s *sums) totals(w *weights) (n, sum, squares float64) {
	for i, times := range w {
		t := float64(times)
		n += t * s.counts[i]
		sum += t * s.sum[i]
		squares += t * s.squares[i]
	}
	return n, sum, squares
}

// mean returns NaN if there are no values.
func (s *sums) mean(w *weights) float64 {
	n, sum, _ := s.totals(w)
	return s.middle + sum/n
}

func (s *sums) std(w *weights) float64 {
	n, sum, squares := s.totals(w)
	return math.Sqrt(max(0, squares/n-sum/n*sum/n))
}

// of returns the mean of a stretch, which must have values.
func (s *sums) of(stretch int) float64 {
	return s.middle + s.sum[stretch]/s.counts[stretch]
}

func (s *sums) meanParts() *[stretches]float64 {
	n, _, _ := s.totals(&once)
	parts := s.counts
	for i := range parts {
		parts[i] /= max(1, n)
	}
	return &parts
}

func (s *sums) stdParts() *[stretches]float64 {
	parts, mean, std := s.meanParts(), s.mean(&once), s.std(&once)
	for i := range parts {
		if parts[i] > 0 && std > 0 {
			parts[i] *= (s.of(i) - mean) / std
		}
	}
	return parts
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
	n, _, _ := s.sums.totals(w)
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
	// Find the last count at or below the rank.
	low, high := 0, len(s.before)
	for high-low > 1 {
		if middle := (low + high) / 2; ahead(middle) <= rank {
			low = middle
		} else {
			high = middle
		}
	}
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
// on the side with fewer of them. If the latency rises, enough values suffice,
// because they are all in the last stretches.
func (s *sample) quantileStatistic(p float64) statistic {
	n := len(s.items)
	edge := int(math.Round(p * float64(n)))
	below, above := s.countsIn(0, edge), s.countsIn(edge, n)
	return statistic{
		of:          func(w *weights) float64 { return s.quantile(p, w) },
		known:       s.sums.known() && min(positive(&below), positive(&above)) >= minEvents,
		latency:     s,
		knownRising: min(edge, n-edge) >= minEvents,
		parts:       func() *[stretches]float64 { return s.quantileParts(p) },
	}
}

// quantileParts returns the share of each stretch in values around a quantile.
func (s *sample) quantileParts(p float64) *[stretches]float64 {
	n := float64(len(s.items))
	reach := max(minEvents, min(p, 1-p)*n/4)
	from, to := int(max(0, p*n-reach)), int(min(n, math.Ceil(p*n+reach)))
	parts := s.countsIn(from, to)
	for i := range parts {
		parts[i] /= float64(to - from)
	}
	return &parts
}

func (s *sample) meanStatistic() statistic {
	return statistic{of: s.sums.mean, known: s.sums.known(), latency: s, knownRising: s.sums.known(), parts: s.sums.meanParts}
}

func (s *sample) stdStatistic() statistic {
	return statistic{of: s.sums.std, known: s.sums.known(), latency: s, knownRising: s.sums.known(), parts: s.sums.stdParts}
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
