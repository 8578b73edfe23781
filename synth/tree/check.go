package tree

import (
	"fmt"
	"math"

	"moontide/trace"
)

const (
	// minAccepted is the smallest share of requests that must be within MinISL
	// and MaxISL. Below it, nearly all draws would be rejected.
	minAccepted = 1e-4
	// maxIDs keeps the core's ids, and as many ids of unique blocks, below
	// 2^53, the largest integers that every JSON reader represents exactly.
	maxIDs = 1 << 52
	// maxTime is the latest arrival in milliseconds that a trace can hold.
	maxTime = 1e15
)

// check returns a [*ShapeError] if n requests cannot be drawn.
func (m *shapedModel) check(n int) error {
	s := m.shape
	if ids := float64(m.coreBlocks) * float64(s.PrefixRootMultiplier); ids > maxIDs {
		return shapeErrorf("PrefixRootMultiplier", s.PrefixRootMultiplier,
			"takes %.0f block ids, %d for each copy of the core; at most %d are allowed", ids, m.coreBlocks, uint64(maxIDs))
	}
	if _, osl := m.outputs.Bounds(); osl > trace.MaxLength {
		return shapeErrorf("OSLMultiplier", s.OSLMultiplier,
			"makes outputs of up to %d tokens; at most %d are allowed (MaxOSL clips)", osl, trace.MaxLength)
	}
	if err := m.checkISL(); err != nil {
		return err
	}
	if ms := m.expectedDuration(n); ms > maxTime {
		return shapeErrorf("SpeedupRatio", s.SpeedupRatio, "makes %d requests take %.2g ms; at most %g are allowed", n, ms, maxTime)
	}
	return nil
}

func (m *shapedModel) checkISL() error {
	s := m.shape
	shortest, longest := m.islRange()
	accepted := m.acceptance()
	switch {
	case s.MaxISL == 0 && longest > trace.MaxLength:
		field, by := "PrefixLenMultiplier", s.PrefixLenMultiplier
		if s.PromptLenMultiplier > by {
			field, by = "PromptLenMultiplier", s.PromptLenMultiplier
		}
		return shapeErrorf(field, by, "makes prompts of up to %d tokens; at most %d are allowed (MaxISL rejects)", longest, trace.MaxLength)
	case s.MaxISL > 0 && s.MaxISL < shortest:
		return shapeErrorf("MaxISL", s.MaxISL, "fits no request: the shortest prompt has %d tokens", shortest)
	case s.MinISL > longest:
		return shapeErrorf("MinISL", s.MinISL, "fits no request: the longest prompt has %d tokens", longest)
	case accepted == 0:
		return shapeErrorf("MaxISL", s.MaxISL, "with MinISL %d fits no request: no prompt length lies between them", s.MinISL)
	case accepted >= minAccepted:
		return nil
	}
	field, limit, with := "MinISL", s.MinISL, ""
	if s.MaxISL > 0 {
		field, limit = "MaxISL", s.MaxISL
		if s.MinISL > 0 {
			with = fmt.Sprintf("with MinISL %d ", s.MinISL)
		}
	}
	return shapeErrorf(field, limit, "%sfits only %.2g of the requests; at least %g must fit", with, accepted, minAccepted)
}

// expectedDuration returns the expected length of the trace in milliseconds.
func (m *shapedModel) expectedDuration(n int) float64 {
	candidates := float64(n)
	if !m.shape.KeepRate {
		candidates /= m.acceptance()
	}
	return candidates * m.gaps.Mean() / m.groups.Mean() / nsPerMs / m.shape.SpeedupRatio
}

// acceptance returns the probability that a request is within MinISL and
// MaxISL.
func (m *shapedModel) acceptance() float64 {
	high := m.shape.MaxISL
	if high == 0 {
		high = trace.MaxLength
	}
	sum := 0.
	m.eachExit(func(p float64, shared, exit int) {
		sum += p * (m.islCDF(high, shared, exit) - m.islCDF(m.shape.MinISL-1, shared, exit))
	})
	return sum
}

// islRange returns the ISL of the shortest and the longest possible prompt.
func (m *shapedModel) islRange() (shortest, longest int) {
	shortest = math.MaxInt
	minTail, maxTail := m.tails.Bounds()
	minUnique, maxUnique := m.unique.Bounds()
	m.eachExit(func(_ float64, shared, exit int) {
		low, high := shared*m.size.Tokens, shared*m.size.Tokens
		switch exit {
		case exitOneBlock:
			low, high = minTail, maxTail
		case exitUnique:
			low += (minUnique-1)*m.size.Tokens + minTail
			high += (maxUnique-1)*m.size.Tokens + maxTail
		}
		shortest, longest = min(shortest, low), max(longest, high)
	})
	return shortest, longest
}

// eachExit calls f for each way to leave the core with its probability, the
// shared blocks of the requests that take it, and the kind of exit.
func (m *shapedModel) eachExit(f func(p float64, shared, exit int)) {
	reached := make([]float64, len(m.nodes))
	depth := make([]int, len(m.nodes))
	reached[0] = 1
	for i := range m.nodes { // parents come before their children
		next := &m.nodes[i].next
		for to, count := range next.All {
			p := reached[i] * float64(count) / float64(next.Total())
			if to < 0 {
				f(p, depth[i], to)
				continue
			}
			reached[to], depth[to] = p, depth[i]+m.nodes[to].blocks
		}
	}
}

// islCDF returns the probability that a request has at most isl tokens, given
// its shared blocks and exit.
func (m *shapedModel) islCDF(isl, shared, exit int) float64 {
	left := isl - shared*m.size.Tokens
	switch {
	case left < 0:
		return 0
	case exit == exitEnd:
		return 1
	case exit == exitOneBlock:
		return m.tails.CDF(left)
	}
	// Fewer blocks fit with any tail; one more fits only with a short tail.
	whole, tail := left/m.size.Tokens, left%m.size.Tokens
	fits, withTail := m.unique.CDF(whole), m.unique.CDF(whole+1)
	return fits + (withTail-fits)*m.tails.CDF(tail)
}
