package openai

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"moontide/replay/openai/poll"
)

// connection carries one exchange at a time.
type connection interface {
	// begin begins to send parts, one behind the other, and to feed a what comes
	// back, as far as that goes without waiting; wait must follow. A deadline
	// ends the answer.
	begin(a *answer, deadline time.Time, parts ...[]byte)
	// wait returns when the answer is over. sent is the instant before the first
	// byte was handed to the kernel; wrote says whether all were; err is what
	// writing failed with. An end of ctx ends the answer.
	wait(ctx context.Context) (sent time.Time, wrote bool, err error)
	// alive reports whether a connection that was idle can be used.
	alive() bool
	Close() error
}

// polled is a connection that the client's loop reads.
type polled struct{ conn *poll.Conn }

func (p polled) begin(a *answer, deadline time.Time, parts ...[]byte) {
	p.conn.Begin(&feeder{a, deadline}, a.silence.begin(time.Now(), deadline), parts...)
}

func (p polled) wait(ctx context.Context) (sent time.Time, wrote bool, err error) {
	return p.conn.Wait(ctx)
}

func (p polled) alive() bool  { return p.conn.Alive() }
func (p polled) Close() error { return p.conn.Close() }

// feeder feeds an answer from the loop.
type feeder struct {
	*answer
	until time.Time // the request's deadline
}

// Arrived implements poll.Handler.
func (f *feeder) Arrived(c *poll.Conn, b []byte, at poll.Arrival) (enough bool) {
	before := f.settled()
	f.feed(b, at)
	if until, moved := f.deadline(before, at.Time, f.until); moved {
		c.SetDeadline(until)
	}
	return f.phase == over
}

// Ended implements poll.Handler.
func (f *feeder) Ended(err error, at poll.Arrival) { f.end(err, at) }

// patience is the deadline of an answer of which nothing is needed any more.
func patience(deadline time.Time) time.Time {
	if soon := time.Now().Add(afterEnd); soon.Before(deadline) {
		return soon
	}
	return deadline
}

// connect takes a living connection from the pool or opens one.
func (c *Client) connect(ctx context.Context, s *server, deadline time.Time) (connection, error) {
	if idle, ok := s.idle.living(time.Now()); ok {
		return idle, nil
	}
	return c.open(ctx, s, deadline)
}

// open dials and, where the URL says https, shakes hands, so that what is sent
// next is the request.
func (c *Client) open(ctx context.Context, s *server, deadline time.Time) (connection, error) {
	limit := time.Now().Add(dialTimeout)
	if deadline.Before(limit) {
		limit = deadline
	}
	opening, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	// Dialing goes deep, and a stack that has grown does not shrink soon: the
	// goroutine of a request lives for as long as its answer.
	var opened connection
	var err error
	dialed := make(chan struct{})
	go func() {
		defer close(dialed)
		opened, err = c.dial(opening, s)
	}()
	<-dialed
	switch {
	case err == nil:
		return opened, nil
	case opening.Err() == nil || ctx.Err() != nil:
		return nil, err
	case limit.Equal(deadline):
		return nil, os.ErrDeadlineExceeded
	default:
		return nil, fmt.Errorf("no connection within %v", dialTimeout)
	}
}

func (c *Client) dial(ctx context.Context, s *server) (connection, error) {
	raw, err := c.dialer.DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	if s.secure == nil && c.loop != nil {
		conn, err := c.loop.Adopt(raw)
		return polled{conn}, err
	}
	timed := &timedConn{Conn: raw}
	if s.secure == nil {
		return &blocking{conn: timed, timed: timed}, nil
	}
	layer := tls.Client(timed, s.secure)
	if err := layer.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	return &blocking{conn: layer, timed: timed}, nil
}

// withoutSource leaves the client's port out of an error: it differs with each
// connection and would make a thousand errors of one.
func withoutSource(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		op.Source = nil
	}
	return err
}
