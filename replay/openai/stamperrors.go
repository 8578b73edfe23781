package openai

import (
	"math"
	"time"

	"moontide/replay/openai/poll"
)

// StampErrors is the distribution of how much too late the kernel's stamps of
// token chunks may be: those that were read together with a later event have its
// stamp, all others are exact.
type StampErrors struct {
	Chunks uint64      // that the kernel stamped
	Shared poll.Delays // the largest possible error of those with a shared stamp
}

// StampErrors covers all answers that have ended. It is empty if stamps are the
// client's own, which may be wrong by an unknown amount.
func (c *Client) StampErrors() StampErrors {
	return StampErrors{c.stamped.Load(), c.shared.Snapshot()}
}

// Since is what was added since an earlier snapshot.
func (e StampErrors) Since(before StampErrors) StampErrors {
	return StampErrors{e.Chunks - before.Chunks, e.Shared.Since(before.Shared)}
}

// Quantile returns the error that a fraction q of all chunks does not exceed.
func (e StampErrors) Quantile(q float64) time.Duration {
	shared := e.Shared.Count()
	above := math.Floor((1 - q) * float64(max(e.Chunks, shared)))
	if shared == 0 || above >= float64(shared) {
		return 0
	}
	return e.Shared.Quantile(1 - above/float64(shared))
}
