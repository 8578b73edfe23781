package openai

import (
	"math"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/jsonscan"
)

// usage is the usage object.
type usage struct {
	PromptTokens     *float64 `json:"prompt_tokens"`
	CompletionTokens *float64 `json:"completion_tokens"`
	Details          *struct {
		CachedTokens *float64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHitTokens    *float64 `json:"prompt_cache_hit_tokens"` // DeepSeek
	CachedTokens      *float64 `json:"cached_tokens"`           // Moonshot, older SGLang
	CompletionDetails *struct {
		ReasoningTokens *float64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	ReasoningTokens *float64 `json:"reasoning_tokens"` // SGLang
}

// usageCounts are the token counts in one event.
type usageCounts struct {
	input, output tokenCount
	// Cached tokens by source; a later source overrides an earlier one.
	timings, cached, cacheHit, details tokenCount
	// Reasoning tokens by source, in the same order.
	reasoning, reasoningDetails tokenCount
}

// tokenCount is small, because every event has several.
type tokenCount = trace.Opt[int32]

func (c *chunk) usageCounts() (n usageCounts) {
	if u := c.Usage; u != nil {
		n = usageCounts{input: count(u.PromptTokens), output: count(u.CompletionTokens), cached: count(u.CachedTokens), cacheHit: count(u.CacheHitTokens), reasoning: count(u.ReasoningTokens)}
		if u.Details != nil {
			n.details = count(u.Details.CachedTokens)
		}
		if u.CompletionDetails != nil {
			n.reasoningDetails = count(u.CompletionDetails.ReasoningTokens)
		}
	}
	if len(c.Timings) > 0 {
		var timings struct {
			Cached *float64 `json:"cache_n"`
		}
		if chunkJSON.Unmarshal(c.Timings, &timings) == nil {
			n.timings = count(timings.Cached)
		}
	}
	return n
}

// maxCount is the largest token count. Larger ones, which no request can have, are
// replaced by it, so that sums of counts do not overflow.
const maxCount = math.MaxInt32

// count converts a number of tokens, which some servers send as a float.
func count(n *float64) tokenCount {
	if n == nil || !(*n >= 0) {
		return tokenCount{}
	}
	return trace.Some(int32(min(*n, maxCount)))
}

// firstSet returns n, or the count of a worse source if n is not set.
func firstSet(n, worse tokenCount) tokenCount {
	if n.Set {
		return n
	}
	return worse
}

// update returns counts with those of n. Counts are totals, even from servers that
// send usage with every chunk, so a smaller one does not replace a larger one.
func (n *usageCounts) update(counts replay.Counts) replay.Counts {
	if *n == (usageCounts{}) { // as in most events
		return counts
	}
	raise(&counts.Input, n.input)
	raise(&counts.Output, n.output)
	raise(&counts.Cached, firstSet(n.details, firstSet(n.cacheHit, firstSet(n.cached, n.timings))))
	raise(&counts.Reasoning, firstSet(n.reasoningDetails, n.reasoning))
	return counts
}

func raise(to *trace.Opt[int], n tokenCount) {
	if n.Set && (!to.Set || int(n.Value) > to.Value) {
		*to = trace.Some(int(n.Value))
	}
}

// scanUsage reads usage. Some servers send it with every event.
func scanUsage(c *jsonscan.Cursor, n *usageCounts) {
	if null(c) {
		return
	}
	var seen uint32
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.LowerKey()) {
		case "prompt_tokens":
			c.Once(&seen, 1)
			scanCount(c, &n.input)
		case "completion_tokens":
			c.Once(&seen, 2)
			scanCount(c, &n.output)
		case "cached_tokens":
			c.Once(&seen, 4)
			scanCount(c, &n.cached)
		case "prompt_cache_hit_tokens":
			c.Once(&seen, 8)
			scanCount(c, &n.cacheHit)
		case "prompt_tokens_details":
			c.Once(&seen, 16)
			scanDetails(c, "cached_tokens", &n.details)
		case "completion_tokens_details":
			c.Once(&seen, 32)
			scanDetails(c, "reasoning_tokens", &n.reasoningDetails)
		case "reasoning_tokens":
			c.Once(&seen, 64)
			scanCount(c, &n.reasoning)
		default:
			c.Skip()
		}
	}
}

// scanDetails reads the count with a key of an object.
func scanDetails(c *jsonscan.Cursor, key string, n *tokenCount) {
	if null(c) {
		return
	}
	var seen uint32
	for more := c.Open('{'); more; more = c.More('}') {
		if string(c.LowerKey()) != key {
			c.Skip()
			continue
		}
		c.Once(&seen, 1)
		scanCount(c, n)
	}
}

func scanCount(c *jsonscan.Cursor, n *tokenCount) {
	if null(c) {
		return
	}
	start := *c
	*n = trace.Some(int32(c.Int(maxCount)))
	if c.Peek() == '.' {
		*c = start
		*n = trace.Some(scanFloat(c))
	}
}

// scanFloat reads a count that is a float, without its decimals.
func scanFloat(c *jsonscan.Cursor) int32 {
	n, places := c.Decimal()
	if places > 6 { // rounding could change the integer
		c.Fail()
	}
	for ; places > 0; places-- {
		n /= 10
	}
	if n < 0 || n > maxCount {
		c.Fail()
		return 0
	}
	return int32(n)
}
