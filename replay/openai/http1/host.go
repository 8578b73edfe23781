package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"moontide/replay/openai/poll"
)

// dialTimeout limits the time to open a connection.
const dialTimeout = 30 * time.Second

// Host opens connections to one server and keeps idle ones for 3 seconds. Its
// methods may be called from any goroutine; its fields must not change after the
// first call.
type Host struct {
	Address string      // host:port
	TLS     *tls.Config // nil means plain HTTP
	Loop    *poll.Loop  // reads connections without TLS; nil means one goroutine per response
	// NoReuse opens a new connection for each request.
	NoReuse bool
	// DialContext opens connections; nil means that of a net.Dialer.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	idle   []idleConn // most recently used last
	closed bool
}

// keepAlive is how long an idle connection is kept. vLLM closes idle connections
// after five seconds; this limit must be shorter, or a request could meet a
// closing connection.
const keepAlive = 3 * time.Second

type idleConn struct {
	*Conn
	since time.Time
}

// Conn returns an idle connection, or a new one.
func (h *Host) Conn(ctx context.Context, deadline time.Time) (*Conn, error) {
	if c := h.Idle(); c != nil {
		return c, nil
	}
	return h.Dial(ctx, deadline)
}

// Idle returns the most recently used idle connection that the server has not
// closed, or nil.
func (h *Host) Idle() *Conn {
	for {
		c := h.take()
		if c == nil || c.Alive() {
			return c
		}
		c.Close()
	}
}

func (h *Host) take() *Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closeOld()
	if len(h.idle) == 0 {
		return nil
	}
	last := len(h.idle) - 1
	taken := h.idle[last].Conn
	h.idle[last] = idleConn{}
	h.idle = h.idle[:last]
	return taken
}

// IdleConns returns the number of idle connections.
func (h *Host) IdleConns() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.idle)
}

// Put returns a connection that can carry another request to the pool.
func (h *Host) Put(c *Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.NoReuse {
		c.Close()
		return
	}
	h.closeOld()
	h.idle = append(h.idle, idleConn{c, time.Now()})
}

// closeOld closes connections that were idle for too long.
func (h *Host) closeOld() {
	old := 0
	for old < len(h.idle) && time.Since(h.idle[old].since) > keepAlive {
		h.idle[old].Close()
		old++
	}
	h.idle = slices.Delete(h.idle, 0, old)
}

// Close closes the idle connections, and any that are put back later.
func (h *Host) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, c := range h.idle {
		c.Close()
	}
	h.idle = nil
}

// Dial opens a connection and completes the TLS handshake. It fails with
// os.ErrDeadlineExceeded at the deadline (zero means none) and after 30 seconds.
func (h *Host) Dial(ctx context.Context, deadline time.Time) (*Conn, error) {
	limit := time.Now().Add(dialTimeout)
	if !deadline.IsZero() && deadline.Before(limit) {
		limit = deadline
	}
	dialing, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	// Dial in a separate goroutine: dialing needs a deep stack, which shrinks
	// slowly, and the caller's goroutine lives as long as its response.
	var t poll.Transport
	var err error
	dialed := make(chan struct{})
	go func() {
		defer close(dialed)
		t, err = h.dial(dialing)
	}()
	<-dialed
	switch {
	case err == nil:
		return &Conn{transport: t}, nil
	case time.Now().Before(limit) || ctx.Err() != nil: // a dialer may end at limit before dialing does
		return nil, err
	case limit.Equal(deadline):
		return nil, os.ErrDeadlineExceeded
	default:
		return nil, fmt.Errorf("no connection within %v", dialTimeout)
	}
}

func (h *Host) dial(ctx context.Context) (poll.Transport, error) {
	open := h.DialContext
	if open == nil {
		open = new(net.Dialer).DialContext
	}
	raw, err := open(ctx, "tcp", h.Address)
	if err != nil {
		return nil, err
	}
	if _, plain := raw.(syscall.Conn); plain && h.TLS == nil && h.Loop != nil {
		return h.Loop.Adopt(raw)
	}
	timed := &timedConn{Conn: raw}
	if h.TLS == nil {
		return &blockingConn{Conn: timed, timed: timed}, nil
	}
	secure := tls.Client(timed, h.TLS)
	if err := secure.HandshakeContext(ctx); err != nil {
		raw.Close()
		if _, plain := errors.AsType[tls.RecordHeaderError](err); plain {
			err = fmt.Errorf("%w: the server does not speak TLS, use http://", err)
		} else if strings.Contains(err.Error(), "no application protocol") {
			err = fmt.Errorf("%w: the server takes HTTP/2 only, put a proxy such as nginx before it", err)
		}
		return nil, err
	}
	return &blockingConn{Conn: secure, timed: timed}, nil
}

// withoutSource removes the client's port from an error. The port differs with
// each connection, and errors are counted by their text.
func withoutSource(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		op.Source = nil
	}
	return err
}
