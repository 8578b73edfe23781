package openai

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// silence ends an answer of which nothing arrives for too long. To move a
// deadline with each of ten thousand events a second costs more than the event:
// it is set an eighth of the limit too late, and stays while that is enough.
type silence struct {
	limit time.Duration // 0 is none
	until time.Time     // the deadline that is set; zero where it is the request's
}

// begin returns the deadline of an answer to a request with a deadline of its
// own.
func (s *silence) begin(now, deadline time.Time) time.Time {
	s.until = now.Add(s.limit + s.limit/8)
	if s.limit <= 0 || !s.until.Before(deadline) {
		s.until = time.Time{}
		return deadline
	}
	return s.until
}

// heard takes bytes that arrived at an instant. It returns the new deadline
// where the one that is set will not do.
func (s *silence) heard(at, deadline time.Time) (until time.Time, moved bool) {
	if s.until.IsZero() || s.until.Sub(at) >= s.limit {
		return time.Time{}, false
	}
	return s.begin(at, deadline), true
}

// explain is err, or errSilent where a deadline passed that stood for silence.
func (s *silence) explain(err error) error {
	if !s.until.IsZero() && errors.Is(err, os.ErrDeadlineExceeded) {
		return errSilent{s.limit}
	}
	return err
}

// errSilent is that nothing arrived for so long.
type errSilent struct{ limit time.Duration }

func (e errSilent) Error() string { return fmt.Sprintf("idle: nothing arrived for %v", e.limit) }

// Unwrap says that it is a deadline that passed.
func (e errSilent) Unwrap() error { return os.ErrDeadlineExceeded }

// deadline returns to when an answer has to be waited for after bytes arrived,
// where that has changed. settled is whether it was before.
func (a *answer) deadline(settled bool, at, deadline time.Time) (until time.Time, moved bool) {
	switch {
	case a.settled() && !settled:
		a.silence.until = time.Time{}
		return patience(deadline), true
	case a.settled():
		return time.Time{}, false
	}
	return a.silence.heard(at, deadline)
}
