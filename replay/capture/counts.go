package capture

import (
	"maps"
	"sync"
	"sync/atomic"

	"moontide/replay"
)

// Counts are the counters of a capture.
type Counts struct {
	Requests   int64 // for an answer
	InFlight   int64 // Requests that have not ended
	Other      int64 // requests that are not recorded, such as for /v1/models
	Rows       int64 // written and flushed
	SampledOut int64 // requests of sessions that are not in the sample
	Ended      map[replay.Class]int64
	// LostRows counts missing rows by reason, NoBlocks rows without block ids.
	LostRows, NoBlocks map[string]int64
	HeldBytes          int64 // of bodies and answers
	Faults             int64 // of the capture itself; they did not stop the traffic
	WriteError         error // the first
	// PromptBytes and PromptTokens are the lengths of prompts that were not encoded and
	// whose tokens the server counted: their ratio is the bytes per token.
	PromptBytes, PromptTokens int64
}

// counts is safe for concurrent use.
type counts struct {
	turns atomic.Uint64

	mu  sync.Mutex
	sum Counts
}

func newCounts() *counts {
	return &counts{sum: Counts{Ended: map[replay.Class]int64{}, LostRows: map[string]int64{}, NoBlocks: map[string]int64{}}}
}

// Counts returns the counts so far. It may be called from any goroutine.
func (p *Proxy) Counts() (s Counts) {
	p.counts.add(func(sum *Counts) {
		s = *sum
		s.Ended, s.LostRows, s.NoBlocks = maps.Clone(s.Ended), maps.Clone(s.LostRows), maps.Clone(s.NoBlocks)
	})
	s.HeldBytes = p.memory.held.Load()
	return s
}

func (c *counts) add(change func(sum *Counts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.sum)
}

// lose counts missing rows and keeps the first error, which may be nil.
func (c *counts) lose(why gap, rows int, err error) {
	c.add(func(sum *Counts) {
		sum.LostRows[string(why)] += int64(rows)
		if sum.WriteError == nil {
			sum.WriteError = err
		}
	})
}
