package openai

import (
	"math"
	"time"

	"moontide/replay/openai/poll"
)

// StampErrors is the distribution of the possible errors of the kernel's stamps of
// token chunks. Chunks read together with a later event share its stamp and may
// have arrived earlier; all others are exact.
type StampErrors struct {
	Chunks uint64      // all that the kernel stamped
	Shared poll.Delays // maximum errors of those with a shared stamp
}

// StampErrors returns the errors for all answers that have ended. It is empty for
// client timestamps, whose error is unknown.
func (c *Client) StampErrors() StampErrors {
	return StampErrors{c.stamped.Load(), c.shared.Snapshot()}
}

// Since returns the errors added since an earlier snapshot.
func (e StampErrors) Since(before StampErrors) StampErrors {
	return StampErrors{e.Chunks - before.Chunks, e.Shared.Since(before.Shared)}
}

// Quantile returns the q-quantile of the errors of all chunks.
func (e StampErrors) Quantile(q float64) time.Duration {
	shared := e.Shared.Count()
	above := math.Floor((1 - q) * float64(max(e.Chunks, shared)))
	if shared == 0 || above >= float64(shared) {
		return 0
	}
	return e.Shared.Quantile(1 - above/float64(shared))
}
