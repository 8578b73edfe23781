package openai

import (
	"math"
	"strconv"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/jsonscan"
)

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

// maxCount is the largest token count. Larger ones, which no request can have, are
// replaced by it, so that sums of counts do not overflow.
const maxCount = math.MaxInt32

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

// usage reads the usage object of any API, and SGLang's meta_info, which has the finish
// reason besides. Some servers send it with every event.
func (r *eventReader) usage() {
	c, n := &r.c, &r.info.usage
	if null(c) {
		return
	}
	var apart, read, written tokenCount // of the Messages API: input_tokens are those that the cache has no part in
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.Key()) {
		case "prompt_tokens":
			scanCount(c, &n.input)
		case "completion_tokens", "output_tokens":
			scanCount(c, &n.output)
		case "cached_tokens": // Moonshot, SGLang
			scanCount(c, &n.cached)
		case "prompt_cache_hit_tokens": // DeepSeek
			scanCount(c, &n.cacheHit)
		case "prompt_tokens_details", "input_tokens_details":
			scanDetails(c, "cached_tokens", &n.details)
		case "completion_tokens_details", "output_tokens_details":
			scanDetails(c, "reasoning_tokens", &n.reasoningDetails)
		case "reasoning_tokens": // SGLang
			scanCount(c, &n.reasoning)
		case "input_tokens":
			scanCount(c, &apart)
		case "cache_read_input_tokens":
			scanCount(c, &read)
		case "cache_creation_input_tokens":
			scanCount(c, &written)
		case "finish_reason":
			r.generateReason()
		default:
			c.Skip()
		}
	}
	n.details = firstSet(n.details, read)
	if apart.Set {
		n.input = trace.Some(int32(min(int64(apart.Value)+int64(read.Value)+int64(written.Value), maxCount)))
	}
}

// scanDetails reads the count with a key of an object.
func scanDetails(c *jsonscan.Cursor, key string, n *tokenCount) {
	if null(c) {
		return
	}
	for more := c.Open('{'); more; more = c.More('}') {
		if string(c.Key()) == key {
			scanCount(c, n)
		} else {
			c.Skip()
		}
	}
}

// scanCount reads a number of tokens, which some servers send as a float. Other values
// and negative numbers are no counts.
func scanCount(c *jsonscan.Cursor, n *tokenCount) {
	start := *c
	value := int64(c.Int(maxCount))
	if c.Peek() == '.' {
		*c = start
		var places int
		if value, places = c.Decimal(); places > 6 { // rounding could change the integer
			c.Fail()
		}
		for ; places > 0; places-- {
			value /= 10
		}
	}
	if next := c.Peek(); (next == ',' || next == '}') && value >= 0 && value <= maxCount {
		*n = trace.Some(int32(value))
		return
	}
	*c = start
	text := c.Raw()
	if x, err := strconv.ParseFloat(string(text), 64); err == nil && x >= 0 {
		*n = trace.Some(int32(min(x, maxCount)))
	}
}

// null reads null if it comes next.
func null(c *jsonscan.Cursor) bool {
	if c.Peek() != 'n' {
		return false
	}
	c.Null()
	return true
}
