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
	input, output trace.Opt[int]
	// Cached tokens by source; a later source overrides an earlier one.
	timings, cached, cacheHit, details trace.Opt[int]
	// Reasoning tokens by source, in the same order.
	reasoning, reasoningDetails trace.Opt[int]
}

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
func count(n *float64) trace.Opt[int] {
	if n == nil || !(*n >= 0) {
		return trace.Opt[int]{}
	}
	return trace.Some(int(min(*n, maxCount)))
}

// last returns the last count that is set.
func last(sources ...trace.Opt[int]) (best trace.Opt[int]) {
	for _, source := range sources {
		if source.Set {
			best = source
		}
	}
	return best
}

// update returns counts with those of n. Counts are totals, even from servers that
// send usage with every chunk, so a smaller one does not replace a larger one.
func (n *usageCounts) update(counts replay.Counts) replay.Counts {
	raise(&counts.Input, n.input)
	raise(&counts.Output, n.output)
	raise(&counts.Cached, last(n.timings, n.cached, n.cacheHit, n.details))
	raise(&counts.Reasoning, last(n.reasoning, n.reasoningDetails))
	return counts
}

func raise(to *trace.Opt[int], n trace.Opt[int]) {
	if n.Set && (!to.Set || n.Value > to.Value) {
		*to = n
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
func scanDetails(c *jsonscan.Cursor, key string, n *trace.Opt[int]) {
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

func scanCount(c *jsonscan.Cursor, n *trace.Opt[int]) {
	if null(c) {
		return
	}
	start := *c
	*n = trace.Some(c.Int(maxCount))
	if c.Peek() == '.' {
		*c = start
		*n = trace.Some(scanFloat(c))
	}
}

// scanFloat reads a count that is a float, without its decimals.
func scanFloat(c *jsonscan.Cursor) int {
	n, places := c.Decimal()
	if places > 6 { // rounding could change the integer
		c.Fail()
	}
	for ; places > 0; places-- {
		n /= 10
	}
	if n < 0 || n > maxCount {
		c.Fail()
	}
	return int(n)
}
