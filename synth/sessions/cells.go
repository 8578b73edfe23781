package sessions

import (
	"math"
	"math/rand/v2"
	"slices"
)

// minCell is the number of requests that everything in a model rests on, at
// least.
const minCell = 5

// partition divides the space of known values into leaves, by one comparison
// after the other. The zero partition has one leaf.
type partition struct {
	cuts []cut
}

// cut sends points with less than a value in one dimension one way, the others
// another.
type cut struct {
	dim         int
	at          float64
	below, rest int // a later cut or, as ^i, the leaf i
}

func (p *partition) leaf(point []float64) int {
	if len(p.cuts) == 0 {
		return 0
	}
	for at := 0; at >= 0; {
		c := &p.cuts[at]
		next := c.rest
		if point[c.dim] < c.at {
			next = c.below
		}
		if next < 0 {
			return ^next
		}
		at = next
	}
	panic("unreachable")
}

// bin is a part of a distribution: the values from low to high. It rests on at
// least minCell requests. A value that is common is a bin of its own.
type bin struct {
	count           int
	weight          float64 // of this bin among others
	low, high, mean float64
	// shape is k in low + (high-low) * U^k, where U is uniform: the power law
	// on the bin that has its mean.
	shape float64

	variance float64 // of what it was learned from, while that is at hand
}

// histogram is the distribution of one value.
type histogram struct {
	bins []bin
	upTo []float64 // share of each bin and those before it
}

// newHistogram works out what follows from the bins.
func newHistogram(bins []bin) histogram {
	h := histogram{bins: bins, upTo: make([]float64, len(bins))}
	total := 0.0
	for i := range bins {
		b := &bins[i]
		total += b.weight
		h.upTo[i] = total
		if b.mean > b.low {
			b.shape = (b.high - b.mean) / (b.mean - b.low)
		}
	}
	for i := range h.upTo {
		h.upTo[i] /= total
	}
	return h
}

// at returns a value of the bin in which the share u, 0 to below 1, of the
// distribution lies.
func (h *histogram) at(u float64, random *rand.Rand) float64 {
	i, _ := slices.BinarySearch(h.upTo, u)
	b := &h.bins[min(i, len(h.bins)-1)]
	if b.low == b.high {
		return b.low
	}
	return b.low + (b.high-b.low)*math.Exp(-b.shape*random.ExpFloat64())
}

// conditional is the distribution of one value, given others.
type conditional struct {
	partition
	leaves []histogram
}

// joint is the distribution of several values, given others that are known: of
// the first given the known ones, of the second given these and the first, and
// so on.
type joint []conditional

// choice is which of several things happens, or none of them, given what is
// known.
type choice struct {
	partition
	leaves []chances
}

type chances struct {
	count  int
	shares []float64 // of each thing; none has what is left to 1
}

// none is a choice's other outcome.
const none = -1

func (c *chances) at(u float64) int {
	for i, share := range c.shares {
		if u < share {
			return i
		}
		u -= share
	}
	return none
}

// deck draws numbers from 0 to 1 like cards: of deckSize draws in a row, one
// falls into each part of the interval. What is drawn with it comes as often as
// it should after a few draws already, and in random order all the same.
type deck struct {
	cards [deckSize]uint8
	left  uint8
	cut   bool
}

const deckSize = 32

func (d *deck) draw(random *rand.Rand) float64 {
	if !d.cut {
		for i := range d.cards {
			d.cards[i] = uint8(i)
		}
		d.cut = true
	}
	if d.left == 0 {
		d.left = deckSize
	}
	i := random.Uint32N(uint32(d.left))
	d.left--
	card := d.cards[i]
	d.cards[i], d.cards[d.left] = d.cards[d.left], card
	return (float64(card) + random.Float64()) / deckSize
}

// sampler draws from a joint distribution with a deck for each leaf.
type sampler struct {
	joint
	random *rand.Rand
	decks  [][]deck
	point  []float64
}

func newSampler(j joint, random *rand.Rand) *sampler {
	s := &sampler{joint: j, random: random}
	for i := range j {
		s.decks = append(s.decks, make([]deck, len(j[i].leaves)))
	}
	return s
}

// draw returns the values. They are overwritten by the next draw.
func (s *sampler) draw(known ...float64) []float64 {
	s.point = append(s.point[:0], known...)
	for i := range s.joint {
		c := &s.joint[i]
		leaf := c.leaf(s.point)
		u := s.decks[i][leaf].draw(s.random)
		s.point = append(s.point, c.leaves[leaf].at(u, s.random))
	}
	return s.point[len(known):]
}

// chooser draws from a choice with a deck for each leaf.
type chooser struct {
	*choice
	random *rand.Rand
	decks  []deck
}

func newChooser(c *choice, random *rand.Rand) *chooser {
	return &chooser{choice: c, random: random, decks: make([]deck, len(c.leaves))}
}

// draw returns which thing happens, or none.
func (c *chooser) draw(known ...float64) int {
	if len(c.leaves) == 0 {
		return none
	}
	leaf := c.leaf(known)
	return c.leaves[leaf].at(c.decks[leaf].draw(c.random))
}
