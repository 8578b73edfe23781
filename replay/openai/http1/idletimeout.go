package http1

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// idleDeadline computes the idle deadline of a response. Moving a deadline at each
// of ten thousand events a second would cost more than handling the event, so it
// is set an eighth of the limit too late and moved only when necessary.
type idleDeadline struct {
	limit    time.Duration // 0 means none
	request  time.Time
	until    time.Time // zero if request's deadline is earlier
	draining bool      // the rest is read only to reuse the connection
}

// start returns the first deadline.
func (d *idleDeadline) start(now time.Time) time.Time {
	d.until = now.Add(d.limit + d.limit/8)
	if d.limit <= 0 || !d.until.Before(d.request) {
		d.until = time.Time{}
		return d.request
	}
	return d.until
}

// received returns the new deadline if bytes that arrived at this instant moved
// it.
func (d *idleDeadline) received(at time.Time) (until time.Time, moved bool) {
	if d.until.IsZero() || d.until.Sub(at) >= d.limit {
		return time.Time{}, false
	}
	return d.start(at), true
}

// drain returns the deadline for reading the unused rest of a response.
func (d *idleDeadline) drain(now time.Time) (until time.Time, moved bool) {
	if d.draining {
		return time.Time{}, false
	}
	d.draining, d.until = true, time.Time{}
	if soon := now.Add(drainTime); soon.Before(d.request) {
		return soon, true
	}
	return d.request, true
}

// explain returns err, or an IdleError if the idle deadline passed.
func (d *idleDeadline) explain(err error) error {
	if !d.until.IsZero() && errors.Is(err, os.ErrDeadlineExceeded) {
		return &IdleError{d.limit}
	}
	return err
}

// IdleError reports that nothing arrived for the IdleTimeout of a [Response]. It
// is an os.ErrDeadlineExceeded.
type IdleError struct{ Limit time.Duration }

func (e *IdleError) Error() string { return fmt.Sprintf("idle: nothing arrived for %v", e.Limit) }
func (e *IdleError) Unwrap() error { return os.ErrDeadlineExceeded }
