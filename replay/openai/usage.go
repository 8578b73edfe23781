package openai

import (
	"encoding/json"
	"math"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/jsonscan"
)

// usageCounts are the token counts in one event.
type usageCounts struct{ input, output, cached, reasoning tokenCount }

// tokenCount is small, because every event has several.
type tokenCount = trace.Opt[int32]

// maxCount is the largest token count. Larger ones, which no request can have, are
// replaced by it, so that sums of counts do not overflow.
const maxCount = math.MaxInt32

// update returns counts with those of n. Counts are totals, even from servers that
// send usage with every chunk, so a smaller one does not replace a larger one.
func (n *usageCounts) update(counts replay.Counts) replay.Counts {
	if *n == (usageCounts{}) { // as in most events
		return counts
	}
	raise(&counts.Input, n.input)
	raise(&counts.Output, n.output)
	raise(&counts.Cached, n.cached)
	raise(&counts.Reasoning, n.reasoning)
	return counts
}

func raise(to *trace.Opt[int], n tokenCount) {
	if n.Set && (!to.Set || int(n.Value) > to.Value) {
		*to = trace.Some(int(n.Value))
	}
}

// usage reads the usage object of any API. Some servers send it with every event.
func (r *eventReader) usage() {
	c, n := &r.c, &r.info.usage
	if null(c) {
		return
	}
	// In the Messages API, input_tokens excludes tokens read from or written to the cache.
	// The other APIs have no such counts to add.
	var partial bool
	var read, written tokenCount
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.Key()) {
		case "prompt_tokens":
			scanCount(c, &n.input)
		case "completion_tokens", "output_tokens":
			scanCount(c, &n.output)
		case "prompt_tokens_details", "input_tokens_details":
			scanDetails(c, "cached_tokens", &n.cached)
		case "completion_tokens_details", "output_tokens_details":
			scanDetails(c, "reasoning_tokens", &n.reasoning)
		case "cached_tokens", "prompt_cache_hit_tokens": // of Moonshot and SGLang, DeepSeek
			scanWorse(c, &n.cached)
		case "reasoning_tokens": // SGLang
			scanWorse(c, &n.reasoning)
		case "input_tokens":
			partial = true
			scanCount(c, &n.input)
		case "cache_read_input_tokens":
			scanCount(c, &read)
		case "cache_creation_input_tokens":
			scanCount(c, &written)
		default:
			c.Skip()
		}
	}
	if partial && n.input.Set {
		n.input.Value = int32(min(int64(n.input.Value)+int64(read.Value)+int64(written.Value), maxCount))
	}
	if !n.cached.Set {
		n.cached = read
	}
}

// scanWorse reads a count unless a better source has told it.
func scanWorse(c *jsonscan.Cursor, n *tokenCount) {
	if n.Set {
		c.Skip()
		return
	}
	scanCount(c, n)
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

// scanCount reads a number of tokens, which some servers send as a float. Negative
// numbers and null are no counts; exponents take the slow path.
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
		value = min(value, maxCount)
	}
	if !c.Failed() && value >= 0 && c.Peek()|0x20 != 'e' {
		*n = trace.Some(int32(value))
		return
	}
	if *c = start; null(c) {
		return
	}
	var x float64
	if json.Unmarshal(c.Raw(), &x) != nil {
		c.Fail()
	} else if x >= 0 {
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
