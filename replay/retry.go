package replay

import (
	"context"
	"fmt"
	"time"

	"moontide/trace"
)

// Resender is a [Client] that prepares a refused request differently when it is
// sent again. For other Clients, Prepare is called again.
type Resender interface {
	// PrepareAgain prepares a request that the server refused.
	PrepareAgain(r trace.Request, row int) (Call, error)
}

const (
	// firstRetryDelay is the delay before the first retry if the server sends no
	// Retry-After; it doubles with each retry.
	firstRetryDelay = time.Second
	// maxRetryDelay is the longest wait for a retry; if the server asks for more,
	// the request has failed.
	maxRetryDelay = 10 * time.Minute
	// prepareRetryLead is how long before a retry its body is prepared. Preparing
	// it earlier would hold memory.
	prepareRetryLead = 20 * time.Millisecond
)

// retryDelay returns how long after its end a request may be retried, given the
// number of retries so far, and whether it may be.
func retryDelay(o Outcome, n int) (d time.Duration, may bool) {
	const tooMany, unavailable = 429, 503
	if o.Class != HTTPError || o.Status != tooMany && o.Status != unavailable {
		return 0, false
	}
	if d = o.RetryAfter.Value; !o.RetryAfter.Set {
		d = min(firstRetryDelay<<min(n, 16), maxRetryDelay)
	}
	return d, d <= maxRetryDelay
}

// sendWithRetries retries a refused request up to Retries times. It returns the
// last outcome, when that attempt was ready, and the number of retries. The
// request keeps its slot, so that an overloaded server gets no other request
// instead.
func (r *run) sendWithRetries(ctx context.Context, j job, o Outcome, ready time.Duration) (Outcome, time.Duration, int) {
	retries := 0
	for ; retries < r.Retries; retries++ {
		d, may := retryDelay(o, retries)
		at := o.Done.Add(d).Sub(r.start)
		if !may || r.Duration > 0 && at >= r.Duration || !r.sleep(ctx, at-prepareRetryLead) {
			break
		}
		call := r.prepareAgain(j)
		if d < prepareRetryLead { // then preparing it is part of the wait
			at = max(at, time.Since(r.start))
		}
		if !r.sleep(ctx, at) {
			break
		}
		o, ready = call.Send(ctx), at
	}
	return o, ready, retries
}

// sleep waits until a time on the run's clock. It returns false if sending ended
// first.
func (r *run) sleep(ctx context.Context, until time.Duration) bool {
	timer := time.NewTimer(until - time.Since(r.start))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.notSending:
	case <-ctx.Done():
	}
	select { // any of these may have been ready
	case <-r.notSending:
		return false
	case <-ctx.Done():
		return false
	default:
		return true
	}
}

func (r *run) prepareAgain(j job) Call {
	prepare := r.Client.Prepare
	if again, ok := r.Client.(Resender); ok {
		prepare = again.PrepareAgain
	}
	return callOrFailure(prepare(j.req, j.row))
}

// callOrFailure returns call or, if it could not be prepared, one that fails.
func callOrFailure(call Call, err error) Call {
	if err != nil {
		return failedCall{fmt.Errorf("preparing the request: %w", err)}
	}
	return call
}

// failedCall is the call of a row whose request could not be prepared.
type failedCall struct{ err error }

// Send implements Call.
func (u failedCall) Send(context.Context) Outcome {
	return Outcome{Done: time.Now(), Class: ClientFault, Error: u.err.Error()}
}
