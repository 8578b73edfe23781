package server

import (
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// listener accepts connections of clients.
type listener struct {
	net.Listener
	close func() error // may be called repeatedly
}

func (l *listener) Close() error { return l.close() }

// Accept waits while the process has no file descriptors left, which must not
// end Serve.
func (l *listener) Accept() (net.Conn, error) {
	const pause = 20 * time.Millisecond
	for {
		c, err := l.Listener.Accept()
		switch {
		case err == nil:
			return newConn(c), nil
		case !isTemporary(err):
			return nil, err
		}
		time.Sleep(pause)
	}
}

// connections tracks open connections, so that a shutdown does not wait for
// clients without a request.
type connections struct {
	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	active    map[net.Conn]bool // true while a request is read or answered
}

// listen adds ln. It returns false after a shutdown.
func (c *connections) listen(ln net.Listener) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.listeners = append(c.listeners, ln)
	}
	return !c.closed
}

// track is called by fasthttp when a connection changes state.
func (c *connections) track(conn net.Conn, state fasthttp.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case fasthttp.StateClosed, fasthttp.StateHijacked:
		delete(c.active, conn)
		return
	}
	c.active[conn] = state == fasthttp.StateActive
	if c.closed && !c.active[conn] {
		conn.Close()
	}
}

// shutDown calls first, then closes all listeners and the connections without a
// request. A second call has no effect.
func (c *connections) shutDown(first func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	first()
	var err error
	for _, ln := range c.listeners {
		err = errors.Join(err, ln.Close())
	}
	for conn, active := range c.active {
		if !active {
			conn.Close()
		}
	}
	return err
}

func (c *connections) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.active {
		conn.Close()
	}
}

// isTemporary reports whether a later Accept may succeed.
func isTemporary(err error) bool {
	temporary := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && slices.Contains(temporary, errno)
}
