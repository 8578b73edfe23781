package http1

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// deadlines computes the deadline of a response from what is awaited. Moving the
// idle deadline at each of ten thousand events a second would cost more than
// handling the event, so it is set an eighth of the limit too late and moved only
// when necessary.
type deadlines struct {
	response time.Time     // of the whole response
	start    time.Time     // of the start of the content; zero means none
	idle     time.Duration // between bytes once it has started; 0 means none
	awaiting Action        // what the bytes are read for
	until    time.Time     // zero if the deadline of the response is earlier
}

// begin returns the first deadline.
func (d *deadlines) begin() time.Time { return d.set(d.start) }

// set sets the deadline of what is awaited; zero means none.
func (d *deadlines) set(until time.Time) time.Time {
	if until.IsZero() || !until.Before(d.response) {
		d.until = time.Time{}
		return d.response
	}
	d.until = until
	return until
}

// received returns the new deadline if it was moved by bytes that arrived at this
// instant, or by the action that they led to.
func (d *deadlines) received(action Action, at time.Time) (until time.Time, moved bool) {
	changed := action != d.awaiting
	d.awaiting = action
	switch {
	case action == Read && d.idle > 0 && (changed || !d.until.IsZero() && d.until.Sub(at) < d.idle):
		return d.set(at.Add(d.idle + d.idle/8)), true
	case !changed:
		return time.Time{}, false
	case action == Await:
		return d.set(d.start), true
	case action == Read:
		return d.set(time.Time{}), true
	}
	return d.set(time.Now().Add(restTime)), true
}

// explain returns err, or a more specific error if the deadline of what was awaited
// passed.
func (d *deadlines) explain(err error) error {
	switch {
	case d.until.IsZero() || !errors.Is(err, os.ErrDeadlineExceeded):
	case d.awaiting == Await:
		return ErrNotStarted
	case d.awaiting == Read:
		return &IdleError{d.idle}
	}
	return err
}

// ErrNotStarted reports that the content had not started by the StartDeadline of a
// [Response]. It is an os.ErrDeadlineExceeded.
var ErrNotStarted = fmt.Errorf("the content did not start: %w", os.ErrDeadlineExceeded)

// IdleError reports that nothing arrived for the IdleTimeout of a [Response]. It
// is an os.ErrDeadlineExceeded.
type IdleError struct{ Limit time.Duration }

func (e *IdleError) Error() string {
	return fmt.Sprintf("idle timeout: nothing arrived for %v", e.Limit)
}
func (e *IdleError) Unwrap() error { return os.ErrDeadlineExceeded }
