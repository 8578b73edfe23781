package sessions

import (
	"math"
	"math/rand/v2"
	"slices"
)

// minRequests is the minimum number of requests that contribute to any part of
// a model.
const minRequests = 5

// decisionTree maps known values to leaves by comparisons. Without splits, it
// has one leaf.
type decisionTree struct {
	Splits []split `json:"splits"`
}

// split holds a dimension, a threshold, and where points below the threshold
// and the others go: to a later split or, as -1-i, to leaf i.
type split [4]float64

func (d *decisionTree) leaf(point []float64) int {
	if len(d.Splits) == 0 {
		return 0
	}
	for at := 0; ; {
		s := &d.Splits[at]
		next := s[3]
		if point[int(s[0])] < s[1] {
			next = s[2]
		}
		if next < 0 {
			return ^int(next)
		}
		at = int(next)
	}
}

// bin is a part of a distribution. A common value has requests, weight relative
// to other bins, and the value; other bins have requests, weight, low, high and
// mean. A bin contains at least minRequests requests.
type bin []float64

// histogram is the distribution of one value, prepared for drawing.
type histogram struct {
	bins []bin
	upTo []float64 // cumulative shares of the bins
	// exponents holds k in low + (high-low) * U^k with U uniform: the power-law
	// distribution over the bin that has its mean.
	exponents []float64
}

func newHistogram(bins []bin) histogram {
	h := histogram{bins: bins, upTo: make([]float64, len(bins)), exponents: make([]float64, len(bins))}
	total := 0.0
	for i, b := range bins {
		total += b[1]
		h.upTo[i] = total
		if len(b) > 3 && b[4] > b[2] {
			h.exponents[i] = (b[3] - b[4]) / (b[4] - b[2])
		}
	}
	for i := range h.upTo {
		h.upTo[i] /= total
	}
	return h
}

// draw returns a value of the bin at the cumulative share u, 0 to below 1.
func (h *histogram) draw(u float64, random *rand.Rand) float64 {
	i, _ := slices.BinarySearch(h.upTo, u)
	i = min(i, len(h.bins)-1)
	b := h.bins[i]
	if len(b) == 3 || b[2] == b[3] {
		return b[2]
	}
	return b[2] + (b[3]-b[2])*math.Exp(-h.exponents[i]*random.ExpFloat64())
}

// conditional is the distribution of one value, given others.
type conditional struct {
	decisionTree
	Leaves     [][]bin `json:"leaves"`
	histograms []histogram
}

func (c *conditional) prepare() {
	c.histograms = make([]histogram, len(c.Leaves))
	for i, bins := range c.Leaves {
		c.histograms[i] = newHistogram(bins)
	}
}

// joint is the distribution of several values, given known ones: of the first
// given the known ones, of the second given these and the first, and so on.
type joint []conditional

// mean returns the mean of the value in the source.
func (c *conditional) mean() float64 {
	sum, weight := 0.0, 0.0
	for _, bins := range c.Leaves {
		for _, b := range bins {
			sum += b[1] * b[len(b)-1] // the value, or the mean of the bin
			weight += b[1]
		}
	}
	return sum / weight
}

// choice is the distribution of which of several outcomes happens, or none,
// given known values.
type choice struct {
	decisionTree
	Leaves []shares `json:"leaves"`
}

// happen returns how often an outcome, from 0, happens in the source.
func (c *choice) happen(outcome int) (times float64) {
	for _, leaf := range c.Leaves {
		times += leaf[0] * leaf[1+outcome]
	}
	return times
}

// shares holds the number of requests in a leaf, then the probability of each
// outcome. The rest is the probability of none.
type shares []float64

// none is the outcome that nothing happens, and the index of no row.
const none = -1

func (s shares) at(u float64) int {
	for i, share := range s[1:] {
		if u < share {
			return i
		}
		u -= share
	}
	return none
}

// stratified draws uniform numbers such that of as many consecutive draws as there are
// strata, one falls into each stratum of the unit interval, in random order. With as
// many strata as there are draws in a quarter of a trace of the source's length, the
// means of such traces hardly differ between seeds, while those of shorter windows
// differ about as much as those of the source. Fewer strata would even these out.
type stratified struct {
	order []uint16
	left  uint32
}

const (
	drawsPerStratum = 4
	fewDraws        = 32      // draws with a stratum each
	maxStrata       = 1 << 12 // bounds the memory; the means of so many draws differ little
)

// newStratified returns strata for the draws of a trace of the source's length.
func newStratified(draws float64) stratified {
	s := stratified{order: make([]uint16, int(min(max(draws/drawsPerStratum, min(draws, fewDraws), 1), maxStrata)))}
	for i := range s.order {
		s.order[i] = uint16(i)
	}
	return s
}

func (s *stratified) draw(random *rand.Rand) float64 {
	strata := uint32(len(s.order))
	if s.left == 0 {
		s.left = strata
	}
	i := random.Uint32N(s.left)
	s.left--
	stratum := s.order[i]
	s.order[i], s.order[s.left] = s.order[s.left], stratum
	return (float64(stratum) + random.Float64()) / float64(strata)
}

// jointSampler draws from a joint distribution, stratified within each leaf.
type jointSampler struct {
	joint
	random   *rand.Rand
	uniforms [][]stratified // for each leaf of each value
	point    []float64
}

// newJointSampler returns a sampler of which a trace of the source's length draws at most
// so many values. Few sessions are learned from more requests than are drawn from them.
func newJointSampler(j joint, random *rand.Rand, most float64) *jointSampler {
	s := &jointSampler{joint: j, random: random}
	for i := range j {
		s.uniforms = append(s.uniforms, j[i].strata(most))
	}
	return s
}

// strata returns those of each leaf.
func (c *conditional) strata(most float64) []stratified {
	leaves := make([]stratified, len(c.Leaves))
	for k, bins := range c.Leaves {
		requests := 0.0
		for _, b := range bins {
			requests += b[0]
		}
		leaves[k] = newStratified(min(requests, most))
	}
	return leaves
}

// draw returns the values, which are valid until the next call.
func (s *jointSampler) draw(known ...float64) []float64 {
	s.point = append(s.point[:0], known...)
	for i := range s.joint {
		c := &s.joint[i]
		leaf := c.leaf(s.point)
		u := s.uniforms[i][leaf].draw(s.random)
		s.point = append(s.point, c.histograms[leaf].draw(u, s.random))
	}
	return s.point[len(known):]
}

// choiceSampler draws from a choice, stratified within each leaf.
type choiceSampler struct {
	*choice
	random   *rand.Rand
	uniforms []stratified
}

func newChoiceSampler(c *choice, random *rand.Rand) *choiceSampler {
	s := &choiceSampler{choice: c, random: random}
	for _, shares := range c.Leaves {
		s.uniforms = append(s.uniforms, newStratified(shares[0]))
	}
	return s
}

// draw returns the outcome, or none.
func (c *choiceSampler) draw(known ...float64) int { return c.drawAt(1, known...) }

// drawAt returns the outcome, or none, at other odds that there is one.
func (c *choiceSampler) drawAt(odds float64, known ...float64) int {
	if len(c.Leaves) == 0 {
		return none
	}
	leaf := c.leaf(known)
	shares := c.Leaves[leaf]
	all := sum(shares[1:])
	return shares.at(c.uniforms[leaf].draw(c.random) * (1 + all*(odds-1)) / odds)
}
