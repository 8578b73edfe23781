package sessions

import (
	"math"
	"slices"
)

// amount is some events in some time, or at some ticks.
type amount struct{ events, of float64 }

func (a amount) rate() float64 { return a.events / a.of }

// likelihood is the logarithm of that of the events at their own rate, up to
// what all rates have alike (for Poisson counts and exponential steps alike).
func (a amount) likelihood() float64 {
	if a.events == 0 {
		return 0
	}
	return a.events * math.Log(a.events/a.of)
}

func (a amount) less(b amount) amount { return amount{a.events - b.events, a.of - b.of} }

// stretch is a run of amounts with a steady rate.
type stretch struct {
	from, to int
	sum      amount
}

func (s stretch) rate() float64 { return s.sum.rate() }

const (
	// A cut has to make the rates that much more likely, times the logarithm of
	// the number of amounts, times their noise.
	enoughForPiece = 3
	// maxDepth bounds how often a piece is cut in two, and so the time it takes.
	maxDepth = 512
	// noiseWindow is how many neighbours tell what chance does.
	noiseWindow = 16
)

// steadyPieces cuts a source where its rate changes, by binary segmentation: a
// piece is cut where two rates are most likely, as long as this is more than
// chance. Every piece has minCell amounts and events, at least.
func steadyPieces(amounts []amount, noise func(some []amount) float64) []stretch {
	s := segmenter{upTo: make([]amount, len(amounts)+1)}
	for i, a := range amounts {
		s.upTo[i+1] = amount{s.upTo[i].events + a.events, s.upTo[i].of + a.of}
	}
	s.enough = enoughForPiece * math.Log(float64(len(amounts))) * meanNoise(amounts, noise)
	s.cut(0, len(amounts), 0)
	return s.pieces
}

type segmenter struct {
	upTo   []amount // sums
	enough float64
	pieces []stretch
}

func (s *segmenter) sum(from, to int) amount { return s.upTo[to].less(s.upTo[from]) }

func (s *segmenter) cut(from, to, depth int) {
	all := s.sum(from, to)
	most, at := s.enough, none
	for i := from + minCell; i <= to-minCell && depth < maxDepth; i++ {
		before := s.sum(from, i)
		after := all.less(before)
		if before.events < minCell || after.events < minCell {
			continue
		}
		if gain := before.likelihood() + after.likelihood() - all.likelihood(); gain > most {
			most, at = gain, i
		}
	}
	if at == none {
		s.pieces = append(s.pieces, stretch{from, to, all})
		return
	}
	s.cut(from, at, depth+1)
	s.cut(at, to, depth+1)
}

// meanNoise is how much rates vary between neighbours, relative to chance: 1 for
// a Poisson process. Slow changes are no part of it.
func meanNoise(amounts []amount, noise func([]amount) float64) float64 {
	sum, n := 0.0, 0.0
	for some := range slices.Chunk(amounts, noiseWindow) {
		if len(some) == noiseWindow {
			sum += noise(some)
			n++
		}
	}
	return max(sum/max(n, 1), .05)
}

// poissonNoise is the index of dispersion of counts.
func poissonNoise(some []amount) float64 {
	mean, variance := moments(some, func(a amount) float64 { return a.events })
	if mean == 0 {
		return 1
	}
	return variance / mean
}

// gapNoise is the squared coefficient of variation of steps.
func gapNoise(some []amount) float64 {
	mean, variance := moments(some, func(a amount) float64 { return a.of })
	return variance / (mean * mean)
}

func moments(some []amount, of func(amount) float64) (mean, variance float64) {
	n := float64(len(some))
	for _, a := range some {
		mean += of(a) / n
	}
	for _, a := range some {
		d := of(a) - mean
		variance += d * d / (n - 1)
	}
	return mean, variance
}
