package spec

import (
	"moontide/trace/block"
	"moontide/trace/stats"
)

// leastFitting is the smallest block size that is chosen to fit shared prefixes:
// that of most engines.
const leastFitting = 16

// fittingBlockSize returns the block size of a spec that sets none. Only whole
// blocks are shared, so it divides the lengths of all shared prefixes if that is
// possible: the usual size, or else the nearest from 16 to 512, smaller ones first.
func (s *Spec) fittingBlockSize(usual int) int {
	common := 0
	for _, c := range s.clients {
		if c.shared == nil {
			continue
		}
		for _, l := range c.shared.levels {
			tokens := int(stats.Highest(l.tokens))
			if int(stats.Lowest(l.tokens)) != tokens {
				return usual
			}
			common = divisor(common, tokens)
		}
	}
	if common == 0 {
		return usual
	}
	for size := min(common, usual); size >= leastFitting; size-- {
		if common%size == 0 {
			return size
		}
	}
	for size := usual; size <= min(common, block.DefaultSize); size++ {
		if common%size == 0 {
			return size
		}
	}
	return usual
}

// divisor returns the greatest common divisor.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// SharedTokens returns the mean length of the drawn shared prefixes, and the mean
// part of it that requests share, which is shorter if the block size does not
// divide the lengths. Both are 0 without shared prefixes.
func (s *Spec) SharedTokens() (drawn, shared float64) {
	seen, n := map[*prefixes]bool{}, 0.0
	for _, c := range s.clients {
		if c.prefixes == nil || seen[c.prefixes] {
			continue
		}
		seen[c.prefixes] = true
		for _, leaf := range c.prefixes.levels[len(c.prefixes.levels)-1] {
			drawn += float64(leaf.tokens)
			shared += float64(int(leaf.tokens) / s.blockSize * s.blockSize)
			n++
		}
	}
	return drawn / max(n, 1), shared / max(n, 1)
}
