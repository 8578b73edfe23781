package measure

import (
	"time"

	"moontide/replay"
)

// chunkTokens divides the tokens of an answer among its chunks, in order. Unless the server
// reported them, they are spread evenly, rounded to whole tokens with the same sum.
type chunkTokens struct {
	exact          []int32 // tokens by chunk
	tokens, chunks int
	carry          int // tokens left from earlier chunks, times chunks
}

func tokensOf(rec *replay.Record) chunkTokens {
	tokens, source := rec.OutputTokens()
	c := chunkTokens{tokens: tokens, chunks: max(rec.Chunks, 1)}
	if source == replay.ReportedTokens && len(rec.ChunkTokens) == rec.Chunks && c.plausible(rec.ChunkTokens) {
		c.exact = rec.ChunkTokens
	}
	return c
}

// plausible reports whether every chunk has a token and their sum is that of the answer,
// with exceptions of up to 2 or 1 %. Some servers report the tokens of the whole answer with
// each chunk.
func (c *chunkTokens) plausible(exact []int32) bool {
	const few, share = 2, 100
	sum, none := 0, 0
	for _, k := range exact {
		sum += int(k)
		if k == 0 {
			none++
		}
	}
	off := max(sum-c.tokens, c.tokens-sum)
	return (off <= few || share*off <= c.tokens) && (none <= few || share*none <= len(exact))
}

// single reports whether every chunk has one token.
func (c *chunkTokens) single() bool { return c.exact == nil && c.tokens == c.chunks }

// take returns the tokens of the next n chunks together.
func (c *chunkTokens) take(n int) (tokens int) {
	switch {
	case c.exact != nil:
		for _, k := range c.exact[:n] {
			tokens += int(k)
		}
		c.exact = c.exact[n:]
	case c.tokens == c.chunks:
		tokens = n
	default:
		c.carry += n * c.tokens
		tokens = c.carry / c.chunks
		c.carry -= tokens * c.chunks
	}
	return tokens
}

// countSizes adds the number of chunks with each number of tokens to sizes.
func (c *chunkTokens) countSizes(sizes map[int]int) {
	if c.exact != nil {
		for _, k := range c.exact {
			sizes[int(k)]++
		}
		return
	}
	fewer, more := c.tokens/c.chunks, c.tokens%c.chunks
	sizes[fewer] += c.chunks - more
	sizes[fewer+1] += more
}

// eachTokenGap yields the gaps per token after the first chunk: the gap before a chunk of k
// tokens is k gaps of a k-th each. A chunk without tokens lengthens the next gap.
func eachTokenGap(rec *replay.Record, yield func(gap time.Duration, tokens int)) {
	tokens, waited := tokensOf(rec), time.Duration(0)
	tokens.take(1)
	for _, gap := range rec.Gaps {
		waited += gap
		if k := tokens.take(1); k > 0 {
			yield(waited/time.Duration(k), k)
			waited = 0
		}
	}
}

func maxTokenGap(rec *replay.Record) (longest time.Duration) {
	eachTokenGap(rec, func(gap time.Duration, _ int) { longest = max(longest, gap) })
	return longest
}
