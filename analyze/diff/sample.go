package diff

import (
	"math"
	"slices"
)

// statistic is a number that any resample of a side has; NaN where it has none.
type statistic struct {
	of func(w *weights) float64
	// known says that enough stretches tell of it for an interval.
	known bool
	// rising is what there is where values rise through the run; nil where a
	// rise has no meaning.
	rising *rising
}

// rising is what an interval needs by [growth].
type rising struct {
	sample *sample
	known  bool
	// parts is how far the statistic moves as the values of each stretch move
	// by one.
	parts func() *[stretches]float64
}

// item is a value and the stretch in which it lies.
type item struct {
	value   float64
	stretch uint8
}

// sample holds the values of a side so that the statistics of a resample are
// exact and take no longer for a million values than for a thousand.
type sample struct {
	items []item // sorted
	// before holds, for every stride values, how many of each stretch come before.
	before [][stretches]uint32
	sums   sums
}

// stride is between two counts of a sample.
const stride = 256

// sums are the values of each stretch added up, and their squares, from some
// middle value: squares of what is far from zero lose digits.
type sums struct {
	middle        float64
	counts        [stretches]float64
	sum, squares  [stretches]float64
	withSomething int // stretches with a value
}

func (s *sums) add(stretch uint8, value float64) {
	if s.counts[stretch] == 0 {
		s.withSomething++
	}
	s.counts[stretch]++
	s.sum[stretch] += value - s.middle
	s.squares[stretch] += (value - s.middle) * (value - s.middle)
}

func (s *sums) known() bool { return s.withSomething >= fewestStretches }

// totals are the sums of a resample.
func (s *sums) totals(w *weights) (n, sum, squares float64) {
	for i, times := range w {
		t := float64(times)
		n += t * s.counts[i]
		sum += t * s.sum[i]
		squares += t * s.squares[i]
	}
	return n, sum, squares
}

// mean is NaN where there are no values.
func (s *sums) mean(w *weights) float64 {
	n, sum, _ := s.totals(w)
	return s.middle + sum/n
}

// std is that of the population.
func (s *sums) std(w *weights) float64 {
	n, sum, squares := s.totals(w)
	return math.Sqrt(max(0, squares/n-sum/n*sum/n))
}

// of is the mean of a stretch that has values.
func (s *sums) of(stretch int) float64 {
	return s.middle + s.sum[stretch]/s.counts[stretch]
}

// shares are the shares of the stretches in the values.
func (s *sums) shares() *[stretches]float64 {
	n, _, _ := s.totals(&once)
	parts := s.counts
	for i := range parts {
		parts[i] /= max(1, n)
	}
	return &parts
}

// pulls is how far the standard deviation moves as the values of each stretch
// move by one.
func (s *sums) pulls() *[stretches]float64 {
	parts, mean, std := s.shares(), s.mean(&once), s.std(&once)
	for i := range parts {
		if parts[i] > 0 && std > 0 {
			parts[i] *= (s.of(i) - mean) / std
		}
	}
	return parts
}

// newSample takes the items over.
func newSample(items []item) *sample {
	slices.SortFunc(items, func(a, b item) int { // faster than cmp.Compare, which minds NaN
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

// quantile is the value below which the share p of a resample lies, by linear
// interpolation between closest ranks.
func (s *sample) quantile(p float64, w *weights) float64 {
	n, _, _ := s.sums.totals(w)
	if n == 0 {
		return math.NaN()
	}
	rank := p * (n - 1)
	below := math.Floor(rank)
	low, at := s.at(below, w)
	high := low
	// The next rank is the same item if it is in the resample often enough.
	if rank > below && at <= below+1 {
		high, _ = s.at(below+1, w)
	}
	return low + (rank-below)*(high-low)
}

// at is the value of a rank of a resample, and the rank behind the last copy
// of its item.
func (s *sample) at(rank float64, w *weights) (value, behind float64) {
	ahead := func(i int) (n float64) {
		for k, times := range w {
			n += float64(times) * float64(s.before[i][k])
		}
		return n
	}
	// The last count that is not beyond the rank.
	low, high := 0, len(s.before)
	for high-low > 1 {
		if middle := (low + high) / 2; ahead(middle) <= rank {
			low = middle
		} else {
			high = middle
		}
	}
	behind = ahead(low)
	for _, it := range s.items[low*stride:] {
		if behind += float64(w[it.stretch]); behind > rank {
			return it.value, behind
		}
	}
	return s.items[len(s.items)-1].value, behind
}

// quantileStatistic is known where enough stretches have a value beyond the
// quantile, on the side where there are fewer. Where values rise, the last few
// stretches have them all, and enough values do.
func (s *sample) quantileStatistic(p float64) statistic {
	edge := int(math.Round(p * float64(len(s.items))))
	beyond := min(stretchesIn(s.items[:edge]), stretchesIn(s.items[edge:]))
	return statistic{
		of:    func(w *weights) float64 { return s.quantile(p, w) },
		known: s.sums.known() && beyond >= fewestEvents,
		rising: &rising{
			sample: s, known: min(edge, len(s.items)-edge) >= fewestEvents,
			parts: func() *[stretches]float64 { return s.partsAround(p) },
		},
	}
}

// partsAround are the shares of the stretches in the values around a quantile.
func (s *sample) partsAround(p float64) *[stretches]float64 {
	n := float64(len(s.items))
	reach := max(fewestEvents, min(p, 1-p)*n/4)
	from, to := int(max(0, p*n-reach)), int(min(n, math.Ceil(p*n+reach)))
	var parts [stretches]float64
	for _, it := range s.items[from:to] {
		parts[it.stretch] += 1 / float64(to-from)
	}
	return &parts
}

func (s *sample) meanStatistic() statistic {
	return statistic{s.sums.mean, s.sums.known(), &rising{s, s.sums.known(), s.sums.shares}}
}

func (s *sample) stdStatistic() statistic {
	return statistic{s.sums.std, s.sums.known(), &rising{s, s.sums.known(), s.sums.pulls}}
}

func stretchesIn(items []item) (n int) {
	var seen [stretches]bool
	for _, it := range items {
		if !seen[it.stretch] {
			seen[it.stretch] = true
			if n++; n == stretches {
				break
			}
		}
	}
	return n
}

// ratio is a sum over another, such as tokens over seconds.
type ratio struct{ parts, whole [stretches]float64 }

// statistic is known where enough stretches have some of the parts, and of what
// is not among them.
func (r *ratio) statistic() statistic {
	some, rest := 0, 0
	for i := range r.parts {
		if r.parts[i] > 0 {
			some++
		}
		if r.parts[i] != r.whole[i] {
			rest++
		}
	}
	return statistic{
		known: min(some, rest) >= fewestEvents,
		of: func(w *weights) float64 {
			parts, whole := 0., 0.
			for i, times := range w {
				parts += float64(times) * r.parts[i]
				whole += float64(times) * r.whole[i]
			}
			return parts / whole
		},
	}
}
