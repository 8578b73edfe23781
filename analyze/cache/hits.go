package cache

import "moontide/trace"

// Hits counts look-ups and hits.
type Hits struct {
	// Requests, Blocks and Tokens were looked up; Tokens sums the ISL.
	Requests, Blocks, Tokens int
	// HitBlocks sums the prefix hits m of the requests, HitTokens
	// min(m * block size, ISL).
	HitBlocks, HitTokens int
	// RequestShares sums m / blocks over the requests with blocks.
	RequestShares float64
}

// Rates are the three ratios known as "hit rate", each 0..1. They differ a lot, so
// always name them.
type Rates struct {
	// Block is HitBlocks / Blocks, 0 if there are no blocks.
	Block float64
	// Token is HitTokens / Tokens, absent if all prompts are empty.
	Token trace.Opt[float64]
	// MeanRequest is the mean over requests of the share of blocks hit (the
	// "theoretical hit rate" of Dynamo and AIPerf).
	MeanRequest float64
}

// Rates returns the ratios of the counts.
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

// requestHits returns the Hits of one request of isl tokens that hits m blocks and
// some tokens.
func requestHits(m, tokens, blocks, isl int) Hits {
	h := Hits{Requests: 1, Blocks: blocks, Tokens: isl, HitBlocks: m, HitTokens: tokens}
	if m > 0 {
		h.RequestShares = float64(m) / float64(blocks)
	}
	return h
}

// addRequest counts a request whose first m blocks were hit.
func (h *Hits) addRequest(m, blocks, isl, blockSize int) {
	h.add(requestHits(m, min(m*blockSize, isl), blocks, isl))
}

func (h *Hits) add(other Hits) {
	h.Requests += other.Requests
	h.Blocks += other.Blocks
	h.Tokens += other.Tokens
	h.HitBlocks += other.HitBlocks
	h.HitTokens += other.HitTokens
	h.RequestShares += other.RequestShares
}
