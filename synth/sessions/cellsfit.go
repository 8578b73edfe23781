package sessions

import "slices"

const (
	// A bin rests on usualCell samples, or more where there are more than
	// maxBins times as many, or where values are equal.
	usualCell = 8
	maxBins   = 512
	// A leaf has at least minLeaf samples, or their maxLeaves-th part.
	minLeaf   = 40
	maxLeaves = 256
	// A cut has to explain as much of the values, as n * R^2. Where there is
	// nothing to explain the best of many cuts seldom reaches it.
	enoughForValue  = 10
	enoughForChoice = 12
)

// sample is one observation: what is known, then the values.
type sample struct {
	at     []float64
	weight float64 // how many observations it stands for
}

// fitJoint learns the distribution of the values that follow the known ones, by
// sequential regression trees (J. P. Reiter, "Using CART to Generate Partially
// Synthetic Public Use Microdata", Journal of Official Statistics 21, 2005). It
// needs at least minCell samples.
func fitJoint(samples []sample, known int) joint {
	var j joint
	for dim := known; dim < len(samples[0].at); dim++ {
		g := grower{
			samples: samples, known: dim, targets: [][]float64{ranksOf(samples, dim)},
			few: max(minLeaf, len(samples)/maxLeaves), enough: enoughForValue,
		}
		g.grow()
		c := conditional{partition: partition{g.cuts}}
		usual := max(usualCell, len(samples)/maxBins)
		far := extentOf(valuesOf(samples, sorted(samples, indices(len(samples)), dim), dim), wholeIn(samples, dim))
		for _, some := range g.leaves {
			c.leaves = append(c.leaves, newHistogram(binsOf(samples, sorted(samples, some, dim), dim, usual, far)))
		}
		j = append(j, c)
	}
	return j
}

// ranksOf returns the rank of each sample in one dimension, 0..1; equal values
// have equal ranks.
func ranksOf(samples []sample, dim int) []float64 {
	order := sorted(samples, indices(len(samples)), dim)
	ranks := make([]float64, len(samples))
	for from := 0; from < len(order); {
		to := endOfEqual(samples, order, from, dim)
		for _, i := range order[from:to] {
			ranks[i] = float64(from+to) / 2 / float64(len(order))
		}
		from = to
	}
	return ranks
}

func indices(n int) []int {
	some := make([]int, n)
	for i := range some {
		some[i] = i
	}
	return some
}

// sorted returns some samples in ascending order of one dimension, equal ones in
// their own order.
func sorted(samples []sample, some []int, dim int) []int {
	type key struct {
		value float64
		i     int
	}
	keys := make([]key, len(some))
	for k, i := range some {
		keys[k] = key{samples[i].at[dim], i}
	}
	slices.SortFunc(keys, func(a, b key) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return a.i - b.i
	})
	order := make([]int, len(some))
	for k := range keys {
		order[k] = keys[k].i
	}
	return order
}

// endOfEqual returns where the values end that equal the one at from.
func endOfEqual(samples []sample, order []int, from, dim int) int {
	value := samples[order[from]].at[dim]
	for from < len(order) && samples[order[from]].at[dim] == value {
		from++
	}
	return from
}

// binsOf makes bins of sorted samples. Equal values are never parted.
func binsOf(samples []sample, order []int, dim, usual int, far extent) []bin {
	var bins []bin
	var parts [][]int // samples of each bin
	from := 0         // of the bin at hand
	flush := func(to int) {
		few := to - from
		last := len(bins) - 1
		switch {
		case few >= minCell || few > 0 && last < 0:
			parts = append(parts, order[from:to])
			bins = append(bins, binOf(samples, order[from:to], dim))
		case few > 0 && bins[last].low < bins[last].high:
			parts[last] = order[from-len(parts[last]) : to]
			bins[last] = binOf(samples, parts[last], dim)
		case few > 0: // too few beside a common value count as that value
			bins[last].count += few
			bins[last].weight += float64(few)
		}
		from = to
	}
	for at := 0; at < len(order); {
		to := endOfEqual(samples, order, at, dim)
		if common := to-at >= usual; common {
			if at-from >= minCell || len(bins) > 0 {
				flush(at)
			}
			b := binOf(samples, order[at:to], dim)
			b.count += at - from
			b.weight += float64(at - from)
			parts, bins, from = append(parts, order[at:to]), append(bins, b), to
		} else if to-from >= usual {
			flush(to)
		}
		at = to
	}
	flush(len(order))
	return far.bounded(bins, valuesOf(samples, order, dim))
}

func valuesOf(samples []sample, order []int, dim int) []float64 {
	values := make([]float64, len(order))
	for i, k := range order {
		values[i] = samples[k].at[dim]
	}
	return values
}

func binOf(samples []sample, some []int, dim int) bin {
	b := bin{count: len(some), low: samples[some[0]].at[dim], high: samples[some[len(some)-1]].at[dim]}
	for _, i := range some {
		b.weight += samples[i].weight
		b.mean += samples[i].weight * samples[i].at[dim]
	}
	b.mean /= b.weight
	for _, i := range some {
		d := samples[i].at[dim] - b.mean
		b.variance += samples[i].weight * d * d / b.weight
	}
	return b
}

// grower grows a partition. Of all cuts it takes the one that explains most of
// the variance of the targets, as long as there is one that explains enough.
type grower struct {
	samples []sample
	known   int         // dimensions that may be cut
	targets [][]float64 // each of all samples
	few     int         // samples of a leaf, at least
	enough  float64     // for one target

	whole  []bool // dimensions that have whole numbers only
	cuts   []cut
	leaves [][]int
}

// grow makes the partition.
func (g *grower) grow() {
	for d := range g.known {
		g.whole = append(g.whole, wholeIn(g.samples, d))
	}
	g.divide(indices(len(g.samples)))
}

// divide divides some samples and returns the cut, or as ^i the leaf, that they
// became.
func (g *grower) divide(some []int) int {
	dim, at, found := g.best(some)
	if !found {
		g.leaves = append(g.leaves, some)
		return ^(len(g.leaves) - 1)
	}
	var below, rest []int
	for _, i := range some {
		if g.samples[i].at[dim] < at {
			below = append(below, i)
		} else {
			rest = append(rest, i)
		}
	}
	me := len(g.cuts)
	g.cuts = append(g.cuts, cut{dim: dim, at: at})
	b := g.divide(below)
	r := g.divide(rest)
	g.cuts[me].below, g.cuts[me].rest = b, r
	return me
}

func (g *grower) best(some []int) (dim int, at float64, found bool) {
	if len(some) < 2*g.few {
		return
	}
	most := g.enough
	for d := range g.known {
		order := sorted(g.samples, some, d)
		if g.samples[order[0]].at[d] == g.samples[order[len(order)-1]].at[d] {
			continue
		}
		gains := make([]float64, len(order))
		for _, target := range g.targets {
			g.addGains(gains, order, target)
		}
		for i := g.few; i <= len(order)-g.few; i++ {
			low, high := g.samples[order[i-1]].at[d], g.samples[order[i]].at[d]
			if low < high && gains[i] > most {
				most, dim, at, found = gains[i], d, between(low, high, g.whole[d]), true
			}
		}
	}
	return
}

// addGains adds n * R^2 of the cut before each place of an order: what it
// explains of a target, times the number of samples. Its mean is 1 where there
// is nothing to explain.
func (g *grower) addGains(gains []float64, order []int, target []float64) {
	var n, sum, squares float64
	for _, i := range order {
		w, x := g.samples[i].weight, target[i]
		n += w
		sum += w * x
		squares += w * x * x
	}
	variance := squares/n - (sum/n)*(sum/n)
	if variance < 1e-12 {
		return
	}
	var before, sumBefore float64
	for place, i := range order {
		if place > 0 {
			share := before / n
			apart := sumBefore/before - (sum-sumBefore)/(n-before)
			gains[place] += float64(len(order)) * share * (1 - share) * apart * apart / variance
		}
		before += g.samples[i].weight
		sumBefore += g.samples[i].weight * target[i]
	}
}
