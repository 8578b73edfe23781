package server

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"moontide/replay/listen"
)

// conn is a client's connection. While a request is in flight, the server reads
// from it only to detect that the client leaves; any data is kept for the next
// request.
type conn struct {
	net.Conn
	early          []byte // data read while a request was in flight
	alreadyWritten string // data already written that fasthttp will write next

	mu     sync.Mutex // held while closed changes and fd is used
	closed bool
	fd     int // socket; -1 if it cannot be written without blocking
}

const (
	maxEarly = 4 << 10 // bytes
	// sendBuffer is the size of the kernel's send buffer of a stream in bytes.
	// The default is megabytes, which delays the detection of clients that do
	// not read.
	sendBuffer = 64 << 10
)

func newConn(c net.Conn) *conn {
	wrapped := &conn{Conn: c, fd: -1}
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetWriteBuffer(sendBuffer) // if the system supports it
	}
	if s, ok := c.(syscall.Conn); ok && canTryWrite {
		if raw, err := s.SyscallConn(); err == nil {
			raw.Control(func(fd uintptr) { wrapped.fd = int(fd) })
		}
	}
	return wrapped
}

// Close closes the connection. Nothing else closes the socket, so fd is valid
// while closed is false.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.Conn.Close()
}

// tryWrite writes as much as possible without blocking, possibly nothing.
// Bypassing the [net.Conn] saves a tenth of the cost of a token.
func (c *conn) tryWrite(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.fd < 0:
		return 0, nil
	}
	return tryWrite(c.fd, b)
}

// Write writes for fasthttp, skipping data already written.
func (c *conn) Write(b []byte) (int, error) {
	if len(b) <= len(c.alreadyWritten) && c.alreadyWritten[:len(b)] == string(b) {
		c.alreadyWritten = c.alreadyWritten[len(b):]
		return len(b), nil
	}
	c.alreadyWritten = ""
	return c.Conn.Write(b)
}

// Read returns early data first. It never returns 0 bytes without an error,
// because fasthttp would panic.
func (c *conn) Read(p []byte) (n int, err error) {
	if len(c.early) == 0 {
		for n == 0 && err == nil && len(p) > 0 {
			n, err = c.Conn.Read(p)
		}
		return n, err
	}
	n = copy(p, c.early)
	if c.early = c.early[n:]; len(c.early) == 0 {
		c.early = nil
	}
	return n, nil
}

// awaitLeave waits until the client leaves and returns false. It returns true
// if interrupted, or if it cannot detect that because the client has sent too
// much of its next request.
func (c *conn) awaitLeave() bool {
	for len(c.early) < maxEarly {
		// One byte at a time, because early data is rare.
		c.early = slices.Grow(c.early, 1)
		n, err := c.Conn.Read(c.early[len(c.early) : len(c.early)+1])
		c.early = c.early[:len(c.early)+n]
		if err != nil {
			return errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
	return true
}

// interrupt ends current and future calls of awaitLeave until resume.
func (c *conn) interrupt() { c.SetReadDeadline(time.Unix(1, 0)) }

// resume cancels an interrupt and any deadline.
func (c *conn) resume() { c.SetReadDeadline(time.Time{}) }

// reset closes the connection so that a TCP client sees a reset.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}

// listener accepts connections of clients.
type listener struct{ listen.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c), nil
}
