package cache

import (
	"moontide/trace"
)

// Hits counts what a cache was asked for and what it had.
type Hits struct {
	// Requests, Blocks and Tokens are what was looked up; Tokens sums the ISL.
	Requests, Blocks, Tokens int
	// HitBlocks sums the prefix hits m of the requests, and HitTokens
	// min(m * block size, ISL): a partial last block counts its own tokens.
	HitBlocks, HitTokens int
	// RequestShares sums m / blocks over the requests that have blocks.
	RequestShares float64
}

// Rates are the three ratios that are called "hit rate" in the field, each
// 0..1. They differ a lot, so a number without its name says little.
type Rates struct {
	// Block is HitBlocks over Blocks; 0 where there are no blocks.
	Block float64
	// Token is HitTokens over Tokens; absent where every prompt is empty.
	Token trace.Opt[float64]
	// MeanRequest is the mean over requests of the share of blocks that were
	// hit: short prompts weigh as much as long ones.
	MeanRequest float64
}

// Rates are the ratios of the counts.
func (h Hits) Rates() Rates {
	var r Rates
	if h.Blocks > 0 {
		r.Block = float64(h.HitBlocks) / float64(h.Blocks)
	}
	if h.Tokens > 0 {
		r.Token = trace.Some(float64(h.HitTokens) / float64(h.Tokens))
	}
	if h.Requests > 0 {
		r.MeanRequest = h.RequestShares / float64(h.Requests)
	}
	return r
}

// add counts a request of isl tokens in blocks, of which the first m were hit.
func (h *Hits) add(m, blocks, isl, blockSize int) {
	h.addCounted(m, min(m*blockSize, isl), blocks, isl)
}

func (h *Hits) addCounted(m, tokens, blocks, isl int) {
	h.Requests++
	h.Blocks += blocks
	h.Tokens += isl
	h.HitBlocks += m
	h.HitTokens += tokens
	if m > 0 {
		h.RequestShares += float64(m) / float64(blocks)
	}
}

// addAll adds what other requests were asked for and had.
func (h *Hits) addAll(other Hits) {
	h.Requests += other.Requests
	h.Blocks += other.Blocks
	h.Tokens += other.Tokens
	h.HitBlocks += other.HitBlocks
	h.HitTokens += other.HitTokens
	h.RequestShares += other.RequestShares
}
