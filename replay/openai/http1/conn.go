package http1

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"moontide/replay/openai/poll"
)

// Conn is a connection to a [Host]. It carries one exchange at a time.
type Conn struct {
	transport poll.Transport
	response  *Response // between Begin and the end of Wait
	used      bool      // it has carried an exchange
}

// Used reports whether the connection has carried an exchange before. Servers close
// such connections when they like, perhaps while a request is on its way.
func (c *Conn) Used() bool { return c.used }

// Alive reports whether the connection can carry another request.
func (c *Conn) Alive() bool { return c.transport.Alive() }

// Close closes the connection.
func (c *Conn) Close() error { return c.transport.Close() }

const forever = 100 * 365 * 24 * time.Hour

// Begin sends a request, given in parts, as far as possible without blocking, and
// feeds the response to r. Wait must follow.
func (c *Conn) Begin(r *Response, request ...[]byte) {
	c.response = r
	now, deadline := time.Now(), r.Deadline
	if deadline.IsZero() {
		deadline = now.Add(forever)
	}
	r.conn = c.transport
	r.deadlines.response, r.deadlines.start, r.deadlines.idle = deadline, r.StartDeadline, r.IdleTimeout
	c.transport.Begin(r, r.deadlines.begin(), request...)
}

// Wait sends the rest of the request and returns when the response is over. sent
// is the instant before the first byte was written. err is the write error; the
// response may be complete despite it, as a server may refuse a request before it
// has read all of it. If ctx ends, so does the response.
func (c *Conn) Wait(ctx context.Context) (sent time.Time, err error) {
	sent, wrote, err := c.transport.Wait(ctx)
	c.response.Reusable = c.response.Reusable && wrote
	c.response, c.used = nil, true
	return sent, err
}

// blockingConn is a connection read by the goroutine that waits for the response.
// It is used for TLS and on systems without poll.Loop. Instants are those of its
// reads.
type blockingConn struct {
	net.Conn
	timed    *timedConn // the same connection, or the one under its TLS
	canceled bool       // a cancellation's deadline may still be set: do not reuse

	// Set by Begin, for Wait.
	handler  poll.Handler
	deadline time.Time
	parts    [][]byte
}

const readSize = 4 << 10 // bytes

// Begin implements poll.Transport.
func (b *blockingConn) Begin(h poll.Handler, deadline time.Time, parts ...[]byte) {
	b.handler, b.deadline, b.parts = h, deadline, parts
}

// Wait implements poll.Transport.
func (b *blockingConn) Wait(ctx context.Context) (sent time.Time, wrote bool, err error) {
	h, parts := b.handler, b.parts
	b.handler, b.parts = nil, nil
	b.timed.sent = time.Time{}
	b.SetDeadline(b.deadline)
	// A deadline in the past ends every read and write at once.
	stop := context.AfterFunc(ctx, func() { b.SetDeadline(time.Unix(1, 0)) })
	for _, part := range parts {
		if _, err = b.Write(part); err != nil {
			break // the response has a better error
		}
	}
	b.read(ctx, h)
	if stop() {
		b.SetDeadline(time.Time{})
	} else {
		b.canceled = true
	}
	wrote = err == nil
	if errors.Is(err, os.ErrDeadlineExceeded) { // the response tells what took too long
		err = nil
	}
	return b.timed.sent, wrote, err
}

func (b *blockingConn) read(ctx context.Context, h poll.Handler) {
	buf := make([]byte, readSize)
	for {
		n, err := b.Read(buf)
		at := poll.Arrival{Time: b.timed.arrived}
		if n > 0 && h.Feed(buf[:n], at) {
			return
		}
		if err == nil && ctx.Err() != nil { // Feed may have overwritten the cancellation's deadline
			err = ctx.Err()
		}
		if err != nil {
			h.End(err, at)
			return
		}
	}
}

// Alive implements poll.Transport.
func (b *blockingConn) Alive() bool { return !b.canceled && alive(b.timed.Conn) }

// timedConn records when its system calls moved bytes.
type timedConn struct {
	net.Conn
	sent    time.Time // before the first write of an exchange; zero until then
	arrived time.Time // after the last read
}

func (c *timedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.arrived = time.Now()
	return n, withoutSource(err)
}

func (c *timedConn) Write(p []byte) (int, error) {
	if c.sent.IsZero() {
		c.sent = time.Now()
	}
	n, err := c.Conn.Write(p)
	return n, withoutSource(err)
}
