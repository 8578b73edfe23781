package openai

import (
	"moontide/replay"
	"moontide/trace"
)

// usage is the object of that name.
type usage struct {
	PromptTokens     *int `json:"prompt_tokens"`
	CompletionTokens *int `json:"completion_tokens"`
	Details          *struct {
		CachedTokens *int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHitTokens *int `json:"prompt_cache_hit_tokens"` // DeepSeek
	CachedTokens   *int `json:"cached_tokens"`           // Moonshot, older SGLang
}

// usageCounts are the token counts in one event.
type usageCounts struct {
	input, output trace.Opt[int]
	// Cached tokens by the place that reports them; a later one wins.
	timings, cached, cacheHit, details trace.Opt[int]
}

func (c *chunk) usageCounts() (n usageCounts) {
	if u := c.Usage; u != nil {
		n = usageCounts{input: count(u.PromptTokens), output: count(u.CompletionTokens), cached: count(u.CachedTokens), cacheHit: count(u.CacheHitTokens)}
		if u.Details != nil {
			n.details = count(u.Details.CachedTokens)
		}
	}
	if len(c.Timings) > 0 {
		var timings struct {
			Cached *int `json:"cache_n"`
		}
		if chunkJSON.Unmarshal(c.Timings, &timings) == nil {
			n.timings = count(timings.Cached)
		}
	}
	return n
}

func count(n *int) trace.Opt[int] {
	if n == nil || *n < 0 {
		return trace.Opt[int]{}
	}
	return trace.Some(*n)
}

// update replaces counts by those in n: servers that send usage with every chunk
// send totals.
func (n usageCounts) update(counts replay.Counts) replay.Counts {
	put(&counts.Input, n.input)
	put(&counts.Output, n.output)
	put(&counts.Cached, n.timings)
	put(&counts.Cached, n.cached)
	put(&counts.Cached, n.cacheHit)
	put(&counts.Cached, n.details)
	return counts
}

func put(to *trace.Opt[int], n trace.Opt[int]) {
	if n.Set {
		*to = n
	}
}
