package server

import (
	"net"
	"sync"

	"github.com/valyala/fasthttp"
)

// connections are the listeners and connections that are open, kept so that a
// shutdown need not wait for clients that have nothing to ask.
type connections struct {
	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	active    map[net.Conn]bool // whether a request is being read or answered
}

// listen remembers ln, and returns false after a shutdown.
func (c *connections) listen(ln net.Listener) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.listeners = append(c.listeners, ln)
	}
	return !c.closed
}

// track is told each change of a connection's state.
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

// shutDown calls first, then closes all listeners and all connections without
// a request. A second call does nothing.
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
		if e := ln.Close(); e != nil && err == nil {
			err = e
		}
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
