package http1

import (
	"slices"
	"sync"
	"time"
)

// keepAlive is how long an idle connection is kept. vLLM closes idle connections
// after five seconds; the pool must be quicker, or a request meets a connection
// that is being closed.
const keepAlive = 3 * time.Second

// pool keeps idle connections.
type pool struct {
	mu     sync.Mutex
	idle   []idleConn // the last used at the end
	closed bool
}

type idleConn struct {
	*Conn
	since time.Time
}

// take returns the connection that was used last, or nil. It closes those that
// were idle for too long.
func (p *pool) take(now time.Time) *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(now)
	if len(p.idle) == 0 {
		return nil
	}
	last := len(p.idle) - 1
	taken := p.idle[last].Conn
	p.idle[last] = idleConn{}
	p.idle = p.idle[:last]
	return taken
}

// takeAlive returns a connection that can be used, or nil.
func (p *pool) takeAlive(now time.Time) *Conn {
	for {
		c := p.take(now)
		if c == nil || c.alive() {
			return c
		}
		c.Close()
	}
}

// put keeps a connection, until the pool is closed.
func (p *pool) put(c *Conn, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return
	}
	p.drop(now)
	p.idle = append(p.idle, idleConn{c, now})
}

func (p *pool) drop(now time.Time) {
	old := 0
	for old < len(p.idle) && now.Sub(p.idle[old].since) > keepAlive {
		p.idle[old].Close()
		old++
	}
	p.idle = slices.Delete(p.idle, 0, old)
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		c.Close()
	}
	p.idle = nil
}

func (p *pool) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}
