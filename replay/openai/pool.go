package openai

import (
	"slices"
	"sync"
	"time"
)

// idleTimeout is how long a connection is kept for another request. Servers
// close idle connections after five seconds or more; the pool must be quicker,
// or a request meets a connection that is being closed.
const idleTimeout = 3 * time.Second

// pool keeps connections that can carry another request.
type pool struct {
	mu     sync.Mutex
	idle   []parked // the last used at the end
	closed bool
}

type parked struct {
	connection
	since time.Time
}

// take returns the connection that was used last, and drops those that were
// idle for too long.
func (p *pool) take(now time.Time) (connection, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(now)
	if len(p.idle) == 0 {
		return nil, false
	}
	last := len(p.idle) - 1
	taken := p.idle[last].connection
	p.idle[last] = parked{}
	p.idle = p.idle[:last]
	return taken, true
}

// living takes a connection that can be used.
func (p *pool) living(now time.Time) (connection, bool) {
	for {
		idle, ok := p.take(now)
		if !ok || idle.alive() {
			return idle, ok
		}
		idle.Close()
	}
}

// put keeps a connection, until the pool is closed.
func (p *pool) put(c connection, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return
	}
	p.drop(now)
	p.idle = append(p.idle, parked{c, now})
}

func (p *pool) drop(now time.Time) {
	old := 0
	for old < len(p.idle) && now.Sub(p.idle[old].since) > idleTimeout {
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
