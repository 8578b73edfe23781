package runfile

import (
	"fmt"
	"math"
	"time"
)

// Bounds of what a folder may say, so that sums over the records and parts of a
// run cannot overflow.
const (
	maxRows  = math.MaxInt32
	maxReads = 1 << 53                    // of a whole run
	maxTime  = 100 * 365 * 24 * time.Hour // since the start of the run
)

// checkCounts returns an error if a count is out of range.
func (r *Run) checkCounts() error {
	for _, c := range []struct {
		key string
		n   int
	}{
		{"rows", r.Rows}, {"sent", r.Sent}, {"skipped", r.Skipped}, {"cut", r.Cut}, {"outgrown", r.Outgrown}, {"unfinished", r.Unfinished}, {"lost_turns", r.LostTurns}, {"warmup_requests", r.Warmup},
		{"max_concurrency", r.Limits.MaxConcurrency}, {"block_size", r.Trace.BlockSize},
		{"server_block_size", r.Target.ServerBlockSize}, {"template_tokens", r.Target.TemplateTokens},
	} {
		if c.n < 0 || c.n > maxRows {
			return fmt.Errorf("%s is %d, which is not between 0 and %d", c.key, c.n, maxRows)
		}
	}
	if r.NotSent < -maxRows || r.NotSent > maxRows { // negative if the trace grew during the run
		return fmt.Errorf("not_sent is %d, which is beyond %d", r.NotSent, maxRows)
	}
	if n := max(r.ReadDelay.Reads, r.Merges.Chunks, r.Merges.Merged); n > maxReads {
		return fmt.Errorf("read_delay or merges counts %d reads, more than %d", n, maxReads)
	}
	return r.Part.check()
}
