package stamp

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Listen returns a listener whose connections are each a [*Conn], if l is one of TCP.
func Listen(l net.Listener) net.Listener {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return l
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { Enable(int(fd)) })
	}
	return &listener{TCPListener: tcp, clock: &sharedClock{Clock: NewClock()}}
}

type listener struct {
	*net.TCPListener
	clock *sharedClock
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	tcp, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return newConn(tcp, l.clock)
}

// sharedClock is the clock of all connections of a listener.
type sharedClock struct {
	mu sync.Mutex
	Clock
}

// Conn is a TCP connection that knows when what it has read arrived. It is safe for
// concurrent use.
type Conn struct {
	*net.TCPConn
	reader
	clock *sharedClock
	last  atomic.Int64 // stamp of the last read
}

func (c *Conn) Read(p []byte) (int, error) {
	n, stamp, err := c.read(c.TCPConn, p)
	if n > 0 {
		c.last.Store(stamp)
	}
	return n, err
}

// Arrived returns when the kernel received the last segment of the last read, or the
// current time if it did not tell.
func (c *Conn) Arrived() time.Time {
	c.clock.mu.Lock()
	defer c.clock.mu.Unlock()
	at, _, _ := c.clock.Arrival(c.last.Load())
	return at
}
