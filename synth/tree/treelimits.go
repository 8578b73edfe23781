package tree

import (
	"math"

	"moontide/trace"
)

const (
	// leastAccepted is the smallest share of the requests that may be within
	// MinISL and MaxISL: below it, drawing would be rejecting and little else.
	leastAccepted = 1e-4
	// mostIDs keeps the core's ids, and those of as many unique blocks, below
	// 2^53, up to which every reader of JSON tells numbers apart.
	mostIDs = 1 << 52
	// latest is the last arrival in milliseconds that a trace can say.
	latest = 1e15
)

// check finds what n requests could not be, before any is drawn.
func (m *shapedTree) check(n int) error {
	s := m.shape
	if ids := float64(m.core) * float64(s.PrefixRootMultiplier); ids > mostIDs {
		return badKnob("prefix-root-multiplier", s.PrefixRootMultiplier,
			"takes %.0f block ids, %d for a copy of the core; %d are allowed", ids, m.core, uint64(mostIDs))
	}
	if _, osl := m.outputs.Bounds(); osl > trace.MaxLength {
		return badKnob("osl-multiplier", s.OSLMultiplier,
			"makes outputs of up to %d tokens; %d are allowed (--max-osl clips)", osl, trace.MaxLength)
	}
	if err := m.checkISL(); err != nil {
		return err
	}
	if ms := m.expectedSpan(n); ms > latest {
		return badKnob("speedup-ratio", s.SpeedupRatio, "lets %d requests take %.2g ms; %g are allowed", n, ms, latest)
	}
	return nil
}

func (m *shapedTree) checkISL() error {
	s := m.shape
	shortest, longest := m.extremes()
	accepted := m.accepted()
	switch {
	case s.MaxISL == 0 && longest > trace.MaxLength:
		knob, by := "prefix-len-multiplier", s.PrefixLenMultiplier
		if s.PromptLenMultiplier > by {
			knob, by = "prompt-len-multiplier", s.PromptLenMultiplier
		}
		return badKnob(knob, by, "makes prompts of up to %d tokens; %d are allowed (--max-isl rejects)", longest, trace.MaxLength)
	case s.MaxISL > 0 && s.MaxISL < shortest:
		return badKnob("max-isl", s.MaxISL, "fits no request: the shortest prompt has %d tokens", shortest)
	case s.MinISL > longest:
		return badKnob("min-isl", s.MinISL, "fits no request: the longest prompt has %d tokens", longest)
	case accepted == 0:
		return badKnob("max-isl", s.MaxISL, "with --min-isl %d fits no request: no prompt has a length between them", s.MinISL)
	case accepted >= leastAccepted:
		return nil
	case s.MaxISL > 0 && s.MinISL > 0:
		return badKnob("max-isl", s.MaxISL, "with --min-isl %d fits only %.2g of the requests; at least %g have to fit", s.MinISL, accepted, leastAccepted)
	case s.MaxISL > 0:
		return badKnob("max-isl", s.MaxISL, "fits only %.2g of the requests; at least %g have to fit", accepted, leastAccepted)
	default:
		return badKnob("min-isl", s.MinISL, "fits only %.2g of the requests; at least %g have to fit", accepted, leastAccepted)
	}
}

// expectedSpan is in milliseconds.
func (m *shapedTree) expectedSpan(n int) float64 {
	candidates := float64(n)
	if !m.shape.KeepRate {
		candidates /= m.accepted()
	}
	return candidates * m.steps.Mean() / m.together.Mean() / nsPerMs / m.shape.SpeedupRatio
}

// accepted is the probability that a request is within MinISL and MaxISL: a sum
// over all places at which a walk can leave the core.
func (m *shapedTree) accepted() float64 {
	most := m.shape.MaxISL
	if most == 0 {
		most = trace.MaxLength
	}
	sum := 0.
	m.outcomes(func(p float64, shared, way int) {
		sum += p * (m.upTo(most, shared, way) - m.upTo(m.shape.MinISL-1, shared, way))
	})
	return sum
}

// extremes returns the fewest and the most tokens that a prompt can have.
func (m *shapedTree) extremes() (shortest, longest int) {
	shortest = math.MaxInt
	least, most := m.tails.Bounds()
	low, high := m.unique.Bounds()
	m.outcomes(func(_ float64, shared, way int) {
		a, b := shared*m.size.Tokens, shared*m.size.Tokens
		switch way {
		case toBlock:
			a, b = least, most
		case toUnique:
			a += (low-1)*m.size.Tokens + least
			b += (high-1)*m.size.Tokens + most
		}
		shortest, longest = min(shortest, a), max(longest, b)
	})
	return shortest, longest
}

// outcomes calls f for each way that a walk can end: with its probability, the
// blocks of the core that the request then has, and where it goes.
func (m *shapedTree) outcomes(f func(p float64, shared, way int)) {
	reached := make([]float64, len(m.nodes))
	depth := make([]int, len(m.nodes))
	reached[0] = 1
	for i := range m.nodes { // parents come before their children
		ways := &m.nodes[i].ways
		for way, count := range ways.All {
			p := reached[i] * float64(count) / float64(ways.Total())
			if way < 0 {
				f(p, depth[i], way)
				continue
			}
			reached[way], depth[way] = p, depth[i]+m.nodes[way].blocks
		}
	}
}

// upTo is the probability that a request that goes way, after its shared
// blocks, has at most isl tokens.
func (m *shapedTree) upTo(isl, shared, way int) float64 {
	left := isl - shared*m.size.Tokens
	switch {
	case left < 0:
		return 0
	case way == toEnd:
		return 1
	case way == toBlock:
		return m.tails.CDF(left)
	}
	// Fewer blocks fit with any tail, one more only with a short one.
	whole, tail := left/m.size.Tokens, left%m.size.Tokens
	fit, last := m.unique.CDF(whole), m.unique.CDF(whole+1)
	return fit + (last-fit)*m.tails.CDF(tail)
}
