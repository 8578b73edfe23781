package sessions

import "slices"

const (
	// A bin has usualBinSize samples, or more if there are over maxBins times
	// as many, or if values are equal.
	usualBinSize = 8
	maxBins      = 512
	// A leaf has at least minLeafSize samples, and at least 1/maxLeaves of all.
	minLeafSize = 40
	maxLeaves   = 256
	// A split must gain at least this much (n * R^2). Without anything to
	// explain, the best of many splits rarely does.
	minValueGain  = 10
	minChoiceGain = 12
	// likelyGain is the share of it that a likely dimension must gain.
	likelyGain = 2. / 3
)

// sample is one observation: the known values, then the values to learn.
type sample struct {
	values []float64
	weight float64 // number of observations
}

// point is the value of a sample in one dimension.
type point struct {
	value, weight float64
	sample        int
}

// sortedPoints returns the points of some samples in ascending order.
func sortedPoints(samples []sample, some []int, dim int) []point {
	points := make([]point, len(some))
	for k, i := range some {
		points[k] = point{samples[i].values[dim], samples[i].weight, i}
	}
	slices.SortFunc(points, func(a, b point) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return a.sample - b.sample
	})
	return points
}

func valuesOf(points []point) []float64 {
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.value
	}
	return values
}

// endOfEqual returns the end of the points equal to the one at from.
func endOfEqual(points []point, from int) int {
	to := from
	for to < len(points) && points[to].value == points[from].value {
		to++
	}
	return to
}

// fitJoint learns the distribution of the values after the known ones, by
// sequential regression trees (J. P. Reiter, "Using CART to Generate Partially
// Synthetic Public Use Microdata", Journal of Official Statistics 21, 2005). It
// needs at least minRequests samples, which are divided at thresholds first.
func fitJoint(samples []sample, known int, first ...threshold) joint {
	var j joint
	for dim := known; dim < len(samples[0].values); dim++ {
		points := sortedPoints(samples, indices(len(samples)), dim)
		far := publicRange(valuesOf(points), allWhole(samples, dim))
		g := treeGrower{samples: samples, known: dim, targets: [][]float64{ranks(points)}, minGain: minValueGain, first: first}
		g.grow()
		c := conditional{decisionTree: decisionTree{g.splits}}
		usual := max(usualBinSize, len(samples)/maxBins)
		for _, leaf := range g.leaves {
			c.Leaves = append(c.Leaves, binsOf(sortedPoints(samples, leaf, dim), usual, far))
		}
		j = append(j, c)
	}
	return j
}

// ranks returns the rank of each sample, 0..1; equal values have equal ranks.
func ranks(points []point) []float64 {
	ranks := make([]float64, len(points))
	for from := 0; from < len(points); {
		to := endOfEqual(points, from)
		for _, p := range points[from:to] {
			ranks[p.sample] = float64(from+to) / 2 / float64(len(points))
		}
		from = to
	}
	return ranks
}

// binsOf makes bins of sorted points. Equal values share a bin.
func binsOf(points []point, usual int, far valueRange) []bin {
	var bins []rawBin
	var starts []int // first point of each bin
	from := 0        // start of the current bin
	flush := func(to int) {
		n := to - from
		last := len(bins) - 1
		switch {
		case n >= minRequests || n > 0 && last < 0:
			starts = append(starts, from)
			bins = append(bins, binOf(points[from:to]))
		case n > 0 && bins[last].low < bins[last].high: // too few: extend the last bin
			bins[last] = binOf(points[starts[last]:to])
		case n > 0: // too few after a common value: use that value
			bins[last].count += n
			bins[last].weight += float64(n)
		}
		from = to
	}
	for at := 0; at < len(points); {
		to := endOfEqual(points, at)
		if common := to-at >= usual; common {
			if at-from >= minRequests || len(bins) > 0 {
				flush(at)
			}
			b := binOf(points[at:to])
			b.count += at - from
			b.weight += float64(at - from)
			starts, bins, from = append(starts, at), append(bins, b), to
		} else if to-from >= usual {
			flush(to)
		}
		at = to
	}
	flush(len(points))
	return far.publicBins(bins, valuesOf(points))
}

// rawBin is a bin with exact bounds.
type rawBin struct {
	count                             int
	weight, low, high, mean, variance float64
}

func binOf(points []point) rawBin {
	b := rawBin{count: len(points), low: points[0].value, high: points[len(points)-1].value}
	for _, p := range points {
		b.weight += p.weight
		b.mean += p.weight * p.value
	}
	b.mean /= b.weight
	for _, p := range points {
		d := p.value - b.mean
		b.variance += p.weight * d * d / b.weight
	}
	return b
}

// threshold is a place to split a dimension if both sides have enough samples.
type threshold struct {
	dim   int
	at    float64
	least int
}

// treeGrower grows a decision tree. It takes the split that explains most of
// the variance of the targets, until none gains enough.
type treeGrower struct {
	samples []sample
	known   int         // dimensions to split
	targets [][]float64 // one per sample
	minGain float64     // for one target
	// first holds where to split before the search, even without a gain.
	first []threshold
	// likely are the dimensions to split with less gain if no other split gains enough.
	likely []int

	minLeaf int
	whole   []bool // dimensions with whole numbers only
	splits  []split
	leaves  [][]int
}

func (g *treeGrower) grow() {
	g.minLeaf = max(minLeafSize, len(g.samples)/maxLeaves)
	for d := range g.known {
		g.whole = append(g.whole, allWhole(g.samples, d))
	}
	g.divide(indices(len(g.samples)))
}

// divide divides samples and returns the resulting split, or ^i for leaf i.
func (g *treeGrower) divide(some []int) int {
	dim, at, found := g.firstSplit(some)
	if !found {
		dim, at, found = g.bestSplit(some, indices(g.known), g.minGain)
	}
	if !found {
		dim, at, found = g.bestSplit(some, g.likely, likelyGain*g.minGain)
	}
	if !found {
		g.leaves = append(g.leaves, some)
		return ^(len(g.leaves) - 1)
	}
	var below, rest []int
	for _, i := range some {
		if g.samples[i].values[dim] < at {
			below = append(below, i)
		} else {
			rest = append(rest, i)
		}
	}
	this := len(g.splits)
	g.splits = append(g.splits, split{float64(dim), at})
	b := g.divide(below)
	r := g.divide(rest)
	g.splits[this][2], g.splits[this][3] = float64(b), float64(r)
	return this
}

// firstSplit returns the first threshold with enough samples on both sides.
func (g *treeGrower) firstSplit(some []int) (dim int, at float64, found bool) {
	for _, t := range g.first {
		if t.dim >= g.known {
			continue
		}
		below := 0
		for _, i := range some {
			if g.samples[i].values[t.dim] < t.at {
				below++
			}
		}
		if min(below, len(some)-below) >= t.least {
			return t.dim, t.at, true
		}
	}
	return
}

// bestSplit returns the split of some dimensions that gains most, if that is more than
// minGain. If an interval explains much and gains far more, it returns the beginning of
// that: its end is then found among the rest.
func (g *treeGrower) bestSplit(some, dims []int, minGain float64) (dim int, at float64, found bool) {
	if len(some) < 2*g.minLeaf {
		return
	}
	best, most := minGain, 0.0
	var begins threshold // of the interval that gains most
	for _, d := range dims {
		points := sortedPoints(g.samples, some, d)
		if points[0].value == points[len(points)-1].value {
			continue
		}
		sums := g.runningSums(points)
		for i := g.minLeaf; i <= len(points)-g.minLeaf; i++ {
			low, high := points[i-1].value, points[i].value
			if low == high {
				continue
			}
			if gain := sums.gain(interval{0, i}); gain > best {
				best, dim, at, found = gain, d, between(low, high, g.whole[d]), true
			}
		}
		if in, gain := sums.bestInterval(points, g.minLeaf); gain > most {
			most = gain
			begins = threshold{dim: d, at: between(points[in.from-1].value, points[in.from].value, g.whole[d])}
		}
	}
	if most > max(minExplained*float64(len(some)), intervalGain*best) {
		return begins.dim, begins.at, true
	}
	return
}
