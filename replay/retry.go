package replay

import (
	"context"
	"fmt"
	"time"

	"moontide/trace"
)

// Resender is a [Client] for which it makes a difference that a request was
// prepared before. Where a Client is none, Prepare is called once more.
type Resender interface {
	// PrepareAgain prepares a request that the server refused.
	PrepareAgain(r trace.Request, row int) (Call, error)
}

const (
	// firstPause is before the first request that is sent again to a server
	// that does not say when; each pause after that is twice as long.
	firstPause = time.Second
	// longestPause is the longest that a request is kept for: a server that
	// asks for more has refused it.
	longestPause = 10 * time.Minute
	// respell is how long before its time a request is prepared again: bodies
	// take room.
	respell = 20 * time.Millisecond
)

// pause is how long after its end a request may be sent again that was sent
// again n times before, if it may.
func pause(o Outcome, n int) (d time.Duration, may bool) {
	const tooMany, unavailable = 429, 503
	if o.Class != HTTPError || o.Status != tooMany && o.Status != unavailable {
		return 0, false
	}
	if d = o.RetryAfter; d == 0 {
		d = min(firstPause<<min(n, 16), longestPause)
	}
	return d, d <= longestPause
}

// persist sends a request again as often as it may. It returns the last outcome
// and the instant at which that one was ready. The slot is kept meanwhile: a
// server that has too much to do gets no other request in its place. When
// sending is over, the outcome is what it is.
func (r *run) persist(ctx context.Context, j job, o Outcome, ready time.Duration) (Outcome, time.Duration, int) {
	retries := 0
	for ; retries < r.Retries; retries++ {
		d, may := pause(o, retries)
		at := o.Done.Add(d).Sub(r.start)
		if !may || r.Duration > 0 && at >= r.Duration || !r.sleep(ctx, at-respell) {
			break
		}
		call, err := r.prepareAgain(j)
		if err != nil {
			r.fail(err)
			break
		}
		if !r.sleep(ctx, at) {
			break
		}
		o, ready = call.Send(ctx), at
	}
	return o, ready, retries
}

// sleep waits for an instant. It is false when sending was over before.
func (r *run) sleep(ctx context.Context, until time.Duration) bool {
	timer := time.NewTimer(until - time.Since(r.start))
	defer timer.Stop()
	select {
	case <-r.over:
		return false
	case <-ctx.Done():
		return false
	default:
	}
	select {
	case <-timer.C:
		return true
	case <-r.over:
		return false
	case <-ctx.Done():
		return false
	}
}

func (r *run) prepareAgain(j job) (Call, error) {
	prepare := r.Client.Prepare
	if again, ok := r.Client.(Resender); ok {
		prepare = again.PrepareAgain
	}
	call, err := prepare(j.req, j.row)
	if err != nil {
		return nil, fmt.Errorf("preparing row %d again: %w", j.row+1, err)
	}
	return call, nil
}
