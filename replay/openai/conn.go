package openai

import (
	"crypto/tls"
	"net"
	"time"
)

// conn is a connection that knows when bytes came and went. Its instants are
// those of the system calls, not of whoever gets to look at the bytes later.
// One request uses it at a time.
type conn struct {
	net.Conn
	sent    time.Time // just before the first write since begin
	arrived time.Time // just after the last read that brought bytes
}

// begin readies the connection for a request.
func (c *conn) begin() { c.sent, c.arrived = time.Time{}, time.Time{} }

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.arrived = time.Now()
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	if c.sent.IsZero() {
		c.sent = time.Now()
	}
	return c.Conn.Write(p)
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
