package analyze

import (
	"math"

	"moontide/trace/stats"
)

// Reuse is how long it takes until a block is needed again, which is how long
// a cache has to keep it. It has a value for each prefix hit of an infinite
// cache, that is for each of a prompt's leading blocks up to the first that no
// earlier request had; the last use is the latest request before this one that
// has the block, in order of rows. A block that a prompt has twice is used once
// there.
type Reuse struct {
	// Time is the time since the block's last use in milliseconds, where both
	// requests have a timestamp. A time that runs backwards counts as 0.
	Time stats.Sample
	// Requests is the number of requests since the block's last use: 1 is the
	// request right before.
	Requests stats.Sample
}

// reuseCounter gathers intervals. The blocks of a prompt that were last used by
// the same request share one, and a path has few of them, for a block is never
// used more recently than the block before it.
type reuseCounter struct {
	times    []stats.Counted
	requests []int // how many blocks came back after as many requests

	// The hits at hand, of which each was last used by the row from.
	from   uint32
	blocks int
}

// hit notes that a block of the last of rows is a prefix hit, and the row that
// used it last.
func (c *reuseCounter) hit(rows []row, last uint32) {
	if last != c.from {
		c.flush(rows)
		c.from = last
	}
	c.blocks++
}

// flush counts the hits at hand.
func (c *reuseCounter) flush(rows []row) {
	blocks, me := c.blocks, len(rows)-1
	c.blocks = 0
	apart := me - int(c.from)
	if blocks == 0 || apart == 0 { // 0: the prompt has the block twice
		return
	}
	for len(c.requests) <= apart {
		c.requests = append(c.requests, 0)
	}
	c.requests[apart] += blocks
	if ms := rows[me].at - rows[c.from].at; !math.IsNaN(ms) {
		c.times = append(c.times, stats.Counted{Value: max(ms, 0), Count: blocks})
	}
}

func (c *reuseCounter) result() Reuse {
	return Reuse{Time: stats.OfCounts(c.times), Requests: ofCounts(c.requests)}
}

// ofCounts describes whole numbers, of which counts says how many there are of
// each from 0.
func ofCounts(counts []int) stats.Sample {
	counted := make([]stats.Counted, 0, len(counts))
	for value, count := range counts {
		if count > 0 {
			counted = append(counted, stats.Counted{Value: float64(value), Count: count})
		}
	}
	return stats.OfCounts(counted)
}
