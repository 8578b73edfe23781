package analyze

import (
	"math"

	"moontide/trace/stats"
)

// Reuse describes how long it takes until a block is used again, which is how long
// a cache has to keep it. It has one value for each prefix hit of an infinite
// cache: the distance to the most recent earlier request, in row order, with the
// block.
type Reuse struct {
	// Time is the time since the block's last use in milliseconds, if both requests
	// have a timestamp; negative times are treated as 0.
	Time stats.Sample
	// Requests is the number of requests since the block's last use: 1 for the
	// immediately preceding request.
	Requests stats.Sample
}

// reuseCounter collects reuse intervals. Blocks of a prompt that were last used by
// the same request share an interval, and a prompt has few intervals: no block was
// used later than the block before it.
type reuseCounter struct {
	times, requests stats.Collector

	// blocks is the number of pending hits, all last used by row from.
	from   uint32
	blocks int
}

// hit counts a prefix hit of the last of rows on a block last used by row last.
func (c *reuseCounter) hit(rows *rows, last uint32) {
	if last != c.from {
		c.flush(rows)
		c.from = last
	}
	c.blocks++
}

// flush counts the pending hits.
func (c *reuseCounter) flush(rows *rows) {
	blocks, me := c.blocks, rows.len()-1
	c.blocks = 0
	apart := me - int(c.from)
	if blocks == 0 || apart == 0 { // 0: the block occurs twice in the prompt
		return
	}
	c.requests.AddN(float64(apart), blocks)
	if ms := rows.at(me).at() - rows.at(int(c.from)).at(); !math.IsNaN(ms) {
		c.times.AddN(max(ms, 0), blocks)
	}
}

func (c *reuseCounter) result() Reuse {
	return Reuse{Time: c.times.Sample(), Requests: c.requests.Sample()}
}
