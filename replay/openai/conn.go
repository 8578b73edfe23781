package openai

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// conn is a connection that knows when bytes came and went. Its instants are
// those of the system calls, not of whoever gets to look at the bytes later.
// One request uses it at a time.
type conn struct {
	net.Conn // nil until open
	sent     time.Time
	arrived  time.Time
}

// begin readies the connection for a request.
func (c *conn) begin() { c.sent, c.arrived = time.Time{}, time.Time{} }

// Read notes when bytes, or the end, arrived.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.arrived = time.Now()
	return n, withoutSource(err)
}

// Write notes when the first byte since begin was handed to the kernel.
func (c *conn) Write(p []byte) (int, error) {
	if c.sent.IsZero() {
		c.sent = time.Now()
	}
	n, err := c.Conn.Write(p)
	return n, withoutSource(err)
}

func (c *conn) Close() error {
	if c.Conn == nil {
		return nil
	}
	return c.Conn.Close()
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

// timed finds the conn under a connection that the pool returned, which is a
// TLS layer over it where the URL says https. The instants are then those of
// the ciphertext.
func timed(c net.Conn) *conn {
	if layer, ok := c.(*tls.Conn); ok {
		c = layer.NetConn()
	}
	return c.(*conn)
}

// lazyDial gives the pool a connection that open opens when it is taken out:
// the pool could neither cancel a dial nor bound it by a request's deadline.
func lazyDial(string) (net.Conn, error) { return &conn{}, nil }

// open dials and, where the URL says https, shakes hands, so that what is sent
// next is the request.
func (c *Client) open(ctx context.Context, raw net.Conn, deadline time.Time) (err error) {
	limit := time.Now().Add(dialTimeout)
	if deadline.Before(limit) {
		limit = deadline
	}
	opening, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	under := timed(raw)
	under.Conn, err = c.dialer.DialContext(opening, "tcp", c.host.Addr)
	if layer, ok := raw.(*tls.Conn); ok && err == nil {
		err = layer.HandshakeContext(opening)
	}
	switch {
	case err == nil:
		return nil
	case opening.Err() == nil || ctx.Err() != nil:
		return err
	case limit.Equal(deadline):
		return os.ErrDeadlineExceeded
	default:
		return fmt.Errorf("no connection within %v", dialTimeout)
	}
}
