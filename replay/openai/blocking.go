package openai

import (
	"context"
	"net"
	"time"

	"moontide/replay/openai/poll"
)

// blocking is a connection that is read by the goroutine whose request it
// carries: one under TLS, or on a system without a loop. Instants are those of
// the goroutine's reads.
type blocking struct {
	conn   net.Conn
	timed  *timedConn // the same, or what lies under its TLS
	called bool       // off: the deadline that ended a request may yet come

	// What begin was told, for wait: to send is to wait here.
	answer   *answer
	deadline time.Time
	parts    [][]byte
}

// readSize is the room for one read of a goroutine.
const readSize = 4 << 10

func (b *blocking) begin(a *answer, deadline time.Time, parts ...[]byte) {
	b.answer, b.deadline, b.parts = a, deadline, parts
}

func (b *blocking) wait(ctx context.Context) (sent time.Time, wrote bool, err error) {
	a, deadline, parts := b.answer, b.deadline, b.parts
	b.answer, b.parts = nil, nil
	b.timed.sent = time.Time{}
	b.conn.SetDeadline(a.silence.begin(time.Now(), deadline))
	// A deadline in the past ends every wait in the connection at once.
	unwatch := context.AfterFunc(ctx, func() { b.conn.SetDeadline(time.Unix(1, 0)) })
	// A server may refuse a request, and close, before it has read all of it:
	// the answer says more than the failed write.
	for _, part := range parts {
		if _, err = b.conn.Write(part); err != nil {
			break
		}
	}
	b.read(ctx, a, deadline)
	if unwatch() {
		b.conn.SetDeadline(time.Time{})
	} else {
		b.called = true
	}
	return b.timed.sent, err == nil, err
}

func (b *blocking) read(ctx context.Context, a *answer, deadline time.Time) {
	buf := make([]byte, readSize)
	for {
		n, err := b.conn.Read(buf)
		at := poll.Arrival{Time: b.timed.arrived}
		before := a.settled()
		if n > 0 && a.feed(buf[:n], at) == over {
			return
		}
		if until, moved := a.deadline(before, at.Time, deadline); moved {
			b.conn.SetDeadline(until)
			if ctx.Err() != nil { // its deadline may have been overwritten
				err = ctx.Err()
			}
		}
		if err != nil {
			a.end(err, at)
			return
		}
	}
}

func (b *blocking) alive() bool  { return !b.called && alive(b.timed.Conn) }
func (b *blocking) Close() error { return b.conn.Close() }

// timedConn is a connection that knows when bytes came and went. Its instants
// are those of the system calls, not of whoever gets to look at the bytes
// later.
type timedConn struct {
	net.Conn
	sent    time.Time // zero until something is written
	arrived time.Time
}

// Read notes when bytes, or the end, arrived.
func (c *timedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.arrived = time.Now()
	return n, withoutSource(err)
}

// Write notes when the first byte is handed to the kernel.
func (c *timedConn) Write(p []byte) (int, error) {
	if c.sent.IsZero() {
		c.sent = time.Now()
	}
	n, err := c.Conn.Write(p)
	return n, withoutSource(err)
}
