package sessions

import (
	"fmt"
	"math"

	"moontide/trace"
)

// Model is what the method knows of a trace. Make one with [Fit] or [Read]. It
// does not change and may be used by any number of goroutines at once.
type Model struct {
	size        trace.BlockSize
	hasBlocks   bool // rows have block ids
	fullOnly    bool // a last block that is not full has no id
	hasSessions bool // rows have session ids
	delays      bool // later turns have a delay and no timestamp
	irregular   int
	requests    int // of the source

	arrivals arrivals
	settled  float64 // ms after which few sessions are older than the trace
	isl, osl extent  // of the source

	templates   []template // the first is no template at all
	starts      int        // sessions of the source
	startsAhead float64    // the most by which their number was ahead of their share
	templated   choice     // given the time: a session begins with a template
	first       [2]joint   // of a session without a template, and with one: tokens after it, OSL

	goesOn [2]choice        // whether and how a turn is gone on from, for the first time, and again
	turns  [relations]joint // kept, gap, tokens, OSL

	speed float64 // times the source's rate

	popular []float64 // sessions of the templates up to each
	fresh   uint64    // the first id that no template has
}

// prepare works out what follows from the rest.
func (m *Model) prepare() {
	if m.speed == 0 {
		m.speed = 1
	}
	m.popular = make([]float64, len(m.templates))
	m.fresh = 0
	sum := 0.0
	for i := range m.templates {
		t := &m.templates[i]
		if i > 0 {
			t.depth = m.templates[t.parent].depth + t.blocks
			sum += float64(t.starts)
		}
		m.popular[i] = sum
		t.first = m.fresh
		m.fresh += uint64(t.blocks)
	}
}

// BlockSize returns the tokens of a block and how they are known. A source
// without block ids has none: its tokens are 0.
func (m *Model) BlockSize() trace.BlockSize {
	if !m.hasBlocks {
		return trace.BlockSize{}
	}
	return m.size
}

// Irregular returns the number of the source's rows whose ids were not one for
// each block. It is not kept in a model's file.
func (m *Model) Irregular() int { return m.irregular }

// SourceRequests returns the number of requests that the model was learned from.
func (m *Model) SourceRequests() int { return m.requests }

// Templates returns the number of shared beginnings that the model knows.
func (m *Model) Templates() int { return len(m.templates) - 1 }

// AtRate returns the model with a factor times the rate of requests: that many
// times as many sessions, in which the time between turns stays as it is. (To
// speed up everything, use [trace.Speed] on what it draws.) The factor is above
// 0 and finite.
func (m *Model) AtRate(factor float64) (*Model, error) {
	if !(factor > 0) || math.IsInf(factor, 0) {
		return nil, fmt.Errorf("rate factor %v is not a positive number", factor)
	}
	faster := *m
	faster.speed *= factor
	return &faster, nil
}

// firstOf is the law of a session's first turn. Where the source has too few that
// have a template, or none, they are like the others.
func (m *Model) firstOf(template int) int {
	which := 0
	if template > 0 {
		which = 1
	}
	if len(m.first[which]) == 0 {
		return 1 - which
	}
	return which
}

// blocksOf is the number of ids that a prompt has.
func (m *Model) blocksOf(isl int) int {
	switch {
	case !m.hasBlocks:
		return 0
	case m.fullOnly:
		return isl / m.size.Tokens
	}
	return (isl + m.size.Tokens - 1) / m.size.Tokens
}

// fullBlocks is the number of full blocks of a prompt.
func (m *Model) fullBlocks(isl int) int {
	if !m.hasBlocks {
		return 0
	}
	return isl / m.size.Tokens
}

// tokensOf is the number of tokens of a template with its parents.
func (m *Model) tokensOf(template int) int {
	t := &m.templates[template]
	if t.tail > 0 {
		return (t.depth-1)*m.size.Tokens + t.tail
	}
	return t.depth * m.size.Tokens
}

// startOf is what a first turn's lengths depend on.
func (m *Model) startOf(template int, at float64) [startKnown]float64 {
	k := [startKnown]float64{min(at, m.settled), float64(m.templates[template].depth), 0}
	if m.templates[template].tail > 0 {
		k[2] = 1
	}
	return k
}

func (m *Model) knownOf(t *turn, order int) [turnKnown]float64 {
	own := float64(t.isl - m.tokensOf(t.template))
	return t.known(order, float64(t.isl-t.shared*m.size.Tokens), m.settled, own)
}
