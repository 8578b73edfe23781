package openai

import (
	"math"
	"time"

	"moontide/replay/openai/poll"
)

// Merges are the token chunks that the client read together with the next one,
// and so stamped with an instant that may be too late.
type Merges struct {
	Chunks uint64      // all that the kernel stamped, merged or not
	Late   poll.Delays // the most by which each merged one may be too late
}

// Merges tells of all answers that ended so far. It is empty where stamps are
// the client's own, for then nothing is known of what waited to be read.
func (c *Client) Merges() Merges {
	return Merges{c.stamped.Load(), c.merges.Snapshot()}
}

// Since is what was added since an earlier look.
func (m Merges) Since(before Merges) Merges {
	return Merges{m.Chunks - before.Chunks, m.Late.Since(before.Late)}
}

// Quantile returns the lateness that a fraction q of all chunks did not exceed,
// where a chunk that was not merged is not late.
func (m Merges) Quantile(q float64) time.Duration {
	merged := m.Late.Count()
	above := math.Floor((1 - q) * float64(max(m.Chunks, merged)))
	if merged == 0 || above >= float64(merged) {
		return 0
	}
	return m.Late.Quantile(1 - above/float64(merged))
}
