package http1

import (
	"context"
	"net"
	"time"

	"moontide/replay/openai/poll"
)

// Conn is a connection to a [Host]. It carries one exchange at a time.
type Conn struct {
	transport
	response *Response // between Begin and the end of Wait
}

// transport moves the bytes of a connection.
type transport interface {
	// begin sends parts, one after the other, and feeds the response to r, as
	// far as that is possible without blocking.
	begin(r *Response, until time.Time, parts [][]byte)
	// wait returns when the response is over. sent is the instant before the
	// first byte was handed to the kernel; wrote reports whether all were, and
	// err is the error of writing.
	wait(ctx context.Context) (sent time.Time, wrote bool, err error)
	// alive reports whether the connection, which is idle, can be used.
	alive() bool
	// Close closes a connection that carries no exchange.
	Close() error
}

const forever = 100 * 365 * 24 * time.Hour

// Begin sends a request, given in parts, as far as that is possible without
// blocking, and has the response fed to r. Wait must follow.
func (c *Conn) Begin(r *Response, request ...[]byte) {
	c.response = r
	now, deadline := time.Now(), r.Deadline
	if deadline.IsZero() {
		deadline = now.Add(forever)
	}
	r.idle = idleDeadline{limit: r.IdleTimeout, request: deadline}
	c.begin(r, r.idle.start(now), request)
}

// Wait sends the rest of the request and returns when the response is over. sent
// is the instant before the first byte was handed to the kernel. err is what
// writing failed with; the response may be complete even so, as a server may
// refuse a request before it has read all of it. If ctx ends, so does the
// response.
func (c *Conn) Wait(ctx context.Context) (sent time.Time, err error) {
	sent, wrote, err := c.wait(ctx)
	c.response.Reusable = c.response.Reusable && wrote
	c.response = nil
	return sent, err
}

// Alive reports whether an idle connection can be used: the server has neither
// closed it nor sent anything.
func (c *Conn) Alive() bool { return c.alive() }

// polled is a connection that a poll.Loop reads.
type polled struct{ conn *poll.Conn }

func (p polled) begin(r *Response, until time.Time, parts [][]byte) {
	p.conn.Begin((*polledResponse)(r), until, parts...)
}

func (p polled) wait(ctx context.Context) (sent time.Time, wrote bool, err error) {
	return p.conn.Wait(ctx)
}

func (p polled) alive() bool  { return p.conn.Alive() }
func (p polled) Close() error { return p.conn.Close() }

// polledResponse is a Response that a poll.Loop feeds.
type polledResponse Response

// Arrived implements poll.Handler.
func (p *polledResponse) Arrived(c *poll.Conn, b []byte, at poll.Arrival) (over bool) {
	r := (*Response)(p)
	over = r.Feed(b, at)
	if until, moved := r.deadline(at.Time); moved && !over {
		c.SetDeadline(until)
	}
	return over
}

// Ended implements poll.Handler.
func (p *polledResponse) Ended(err error, at poll.Arrival) { (*Response)(p).End(err, at) }

// blocking is a connection that is read by the goroutine that waits for the
// response: one under TLS, or on a system without a poll.Loop. Instants are those
// of its reads.
type blocking struct {
	conn     net.Conn
	timed    *timedConn // the same, or the connection under its TLS
	canceled bool       // a canceled deadline may still be set: not for reuse

	// Of begin, for wait.
	response *Response
	until    time.Time
	parts    [][]byte
}

const readSize = 4 << 10 // bytes

func (b *blocking) begin(r *Response, until time.Time, parts [][]byte) {
	b.response, b.until, b.parts = r, until, parts
}

func (b *blocking) wait(ctx context.Context) (sent time.Time, wrote bool, err error) {
	r, parts := b.response, b.parts
	b.response, b.parts = nil, nil
	b.timed.sent = time.Time{}
	b.conn.SetDeadline(b.until)
	// A deadline in the past ends every read and write at once.
	stop := context.AfterFunc(ctx, func() { b.conn.SetDeadline(time.Unix(1, 0)) })
	for _, part := range parts {
		if _, err = b.conn.Write(part); err != nil {
			break // the response says more than this
		}
	}
	b.read(ctx, r)
	if stop() {
		b.conn.SetDeadline(time.Time{})
	} else {
		b.canceled = true
	}
	return b.timed.sent, err == nil, err
}

func (b *blocking) read(ctx context.Context, r *Response) {
	buf := make([]byte, readSize)
	for {
		n, err := b.conn.Read(buf)
		at := poll.Arrival{Time: b.timed.arrived}
		if n > 0 && r.Feed(buf[:n], at) {
			return
		}
		if until, moved := r.deadline(at.Time); moved {
			b.conn.SetDeadline(until)
			if ctx.Err() != nil { // its deadline may have been overwritten
				err = ctx.Err()
			}
		}
		if err != nil {
			r.End(err, at)
			return
		}
	}
}

func (b *blocking) alive() bool  { return !b.canceled && alive(b.timed.Conn) }
func (b *blocking) Close() error { return b.conn.Close() }

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
