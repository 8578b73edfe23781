package tree

import (
	"fmt"

	"moontide/trace"
)

const (
	// maxTried is the number of trial requests; at least one must fit MinISL and MaxISL.
	maxTried = 10_000
	// maxIDs keeps the core's ids, and as many ids of unique blocks, below
	// 2^53, the largest integers that every JSON reader represents exactly.
	maxIDs = 1 << 52
	// maxTime is the latest arrival in milliseconds that a trace can hold.
	maxTime = 1e15
)

// check returns a [*ShapeError] if n requests cannot be drawn.
func (m *shapedModel) check(seed uint64, n int) error {
	s := m.shape
	if ids := float64(m.coreBlocks) * float64(s.PrefixRootMultiplier); ids > maxIDs {
		return shapeErrorf("PrefixRootMultiplier", s.PrefixRootMultiplier,
			"takes %.0f block ids, %d for each copy of the core; at most %d are allowed", ids, m.coreBlocks, uint64(maxIDs))
	}
	if _, osl := m.outputs.Bounds(); osl > trace.MaxLength {
		return shapeErrorf("OSLMultiplier", s.OSLMultiplier,
			"makes outputs of up to %d tokens; at most %d are allowed (MaxOSL clips)", osl, trace.MaxLength)
	}
	if ms := float64(n) * m.gaps.Mean() / m.groups.Mean() / nsPerMs / s.SpeedupRatio; ms > maxTime {
		return shapeErrorf("SpeedupRatio", s.SpeedupRatio, "makes %d requests take %.2g ms; at most %g are allowed", n, ms, maxTime)
	}
	tried := m.drawing(seed, n)
	shortest, longest := trace.MaxLength, 0
	for range maxTried {
		tried.next()
		if tried.fits() {
			return tried.checkISL()
		}
		shortest, longest = min(shortest, tried.isl()), max(longest, tried.isl())
	}
	field, limit, with := "MinISL", s.MinISL, ""
	if s.MaxISL > 0 {
		field, limit = "MaxISL", s.MaxISL
		if s.MinISL > 0 {
			with = fmt.Sprintf("with MinISL %d ", s.MinISL)
		}
	}
	return shapeErrorf(field, limit, "%sfits none of %d requests drawn, of %d to %d tokens", with, maxTried, shortest, longest)
}

// checkISL returns a [*ShapeError] if the current prompt is too long for a trace.
func (d *Drawing) checkISL() error {
	if d.isl() <= trace.MaxLength {
		return nil
	}
	s := d.model.shape
	field, by := "PrefixLenMultiplier", s.PrefixLenMultiplier
	if s.PromptLenMultiplier > by {
		field, by = "PromptLenMultiplier", s.PromptLenMultiplier
	}
	return shapeErrorf(field, by, "makes a prompt of %d tokens; at most %d are allowed (MaxISL rejects)", d.isl(), trace.MaxLength)
}
