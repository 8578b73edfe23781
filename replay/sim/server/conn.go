package server

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// conn is a connection of a client. While an answer is under way the server
// reads from it only to see whether the client leaves; what arrives meanwhile
// is kept for the next request.
type conn struct {
	net.Conn
	early []byte // read before its time
	// unneeded is what the HTTP server is about to write although it was
	// written already.
	unneeded string

	mu     sync.Mutex // held while closed changes, and while fd is used
	closed bool
	fd     int // the socket; below 0 where it cannot be written without waiting
}

// mostEarly is how much of the next request is read before its time.
const mostEarly = 4 << 10

// sendBuffer is how much the kernel keeps of a stream that its client does not
// read, in bytes. Left to itself it keeps megabytes, and says only when a good
// part of them is gone that the client reads at all.
const sendBuffer = 64 << 10

// errGone says that the client has left.
var errGone = errors.New("simulated server: the client is gone")

func newConn(c net.Conn) *conn {
	wrapped := &conn{Conn: c, fd: -1}
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetWriteBuffer(sendBuffer) // or what the system has, if it refuses
	}
	if s, ok := c.(syscall.Conn); ok && canTryWrite {
		if raw, err := s.SyscallConn(); err == nil {
			raw.Control(func(fd uintptr) { wrapped.fd = int(fd) })
		}
	}
	return wrapped
}

// Close closes the connection. The socket is closed nowhere else, so it is
// there as long as closed is false.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.Conn.Close()
}

// tryWrite writes as much as can be written without waiting, which may be
// nothing. Going around the [net.Conn] saves a tenth of a token's cost.
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

// bodyEnd ends a chunked body.
const bodyEnd = "0\r\n\r\n"

// Write writes for the HTTP server, but for what is there already.
func (c *conn) Write(b []byte) (int, error) {
	if len(b) <= len(c.unneeded) && c.unneeded[:len(b)] == string(b) {
		c.unneeded = c.unneeded[len(b):]
		return len(b), nil
	}
	c.unneeded = ""
	return c.Conn.Write(b)
}

// Read reads what was read before its time first. It never reads nothing
// without an error, which would bring the HTTP server down.
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

// listen waits for the client to leave and returns false when it does. It
// returns true when it was interrupted, or cannot tell because the client has
// sent too much of its next request.
func (c *conn) listen() bool {
	for len(c.early) < mostEarly {
		// One byte is enough for what hardly ever happens.
		if len(c.early) == cap(c.early) {
			c.early = append(make([]byte, 0, 2*cap(c.early)+1), c.early...)
		}
		n, err := c.Conn.Read(c.early[len(c.early) : len(c.early)+1])
		c.early = c.early[:len(c.early)+n]
		if err != nil {
			return errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
	return true
}

// interrupt ends a listen, also one that is yet to begin, until undisturbed.
func (c *conn) interrupt() { c.SetReadDeadline(time.Unix(1, 0)) }

// undisturbed takes an interrupt and any deadline back.
func (c *conn) undisturbed() { c.SetReadDeadline(time.Time{}) }

// reset closes the connection so that the client sees a reset, where the
// network knows one.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}

// listener accepts clients.
type listener struct {
	net.Listener
	close func() error // may be called more than once
}

func (l *listener) Close() error { return l.close() }

// Accept waits where a process has no descriptor left: that passes, and a
// server does not end for it.
func (l *listener) Accept() (net.Conn, error) {
	const pause = 20 * time.Millisecond
	for {
		c, err := l.Listener.Accept()
		switch {
		case err == nil:
			return newConn(c), nil
		case !passes(err):
			return nil, err
		}
		time.Sleep(pause)
	}
}
