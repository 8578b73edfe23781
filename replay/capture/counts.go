package capture

import (
	"maps"
	"sync"
	"sync/atomic"

	"moontide/replay"
)

// Counts is what a capture has done so far.
type Counts struct {
	Requests   int64 // for an answer, of which InFlight have not ended
	InFlight   int64
	Other      int64 // requests that are passed on and not recorded, such as for /v1/models
	Rows       int64 // written and flushed
	SampledOut int64 // requests of sessions that are not in the sample
	// Ended is the number of requests by outcome. LostRows and NoBlocks count rows that
	// are missing, and rows without block ids, by reason.
	Ended              map[replay.Class]int64
	LostRows, NoBlocks map[string]int64
	HeldBytes          int64 // of bodies and answers
	Faults             int64 // of the capture itself; they did not stop the traffic
	WriteError         error // the first
	// PromptBytes and PromptTokens are those of texts that were not encoded and whose
	// length the server told: how many bytes a token has.
	PromptBytes, PromptTokens int64
}

// counts counts what happens. It is safe for concurrent use.
type counts struct {
	requests, other, rows, faults, inFlight atomic.Int64
	turns                                   atomic.Uint64

	mu  sync.Mutex
	sum Counts
}

func newCounts() *counts {
	return &counts{sum: Counts{Ended: map[replay.Class]int64{}, LostRows: map[string]int64{}, NoBlocks: map[string]int64{}}}
}

// Counts returns the counts so far. It may be called from any goroutine.
func (p *Proxy) Counts() Counts {
	c := p.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sum
	s.Ended, s.LostRows, s.NoBlocks = maps.Clone(s.Ended), maps.Clone(s.LostRows), maps.Clone(s.NoBlocks)
	s.Requests, s.InFlight, s.Other = c.requests.Load(), c.inFlight.Load(), c.other.Load()
	s.Rows, s.Faults, s.HeldBytes = c.rows.Load(), c.faults.Load(), p.memory.held.Load()
	return s
}

// ended counts an exchange that has ended.
func (c *counts) ended(e *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum.Ended[e.class]++
	if e.sampledOut {
		c.sum.SampledOut++
	}
}

func (c *counts) lose(why gap, rows int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum.LostRows[string(why)] += int64(rows)
}

func (c *counts) lackBlocks(why gap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum.NoBlocks[string(why)]++
}

// measured counts a text of which the server told the length.
func (c *counts) measured(bytes, tokens int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum.PromptBytes += int64(bytes)
	c.sum.PromptTokens += int64(tokens)
}

func (c *counts) writeFailed(err error, rows int) {
	c.lose(writing, rows)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sum.WriteError == nil {
		c.sum.WriteError = err
	}
}
