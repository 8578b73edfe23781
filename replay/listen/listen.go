// Package listen bounds the connections of a server, so that clients cannot use up its
// memory or the file descriptors that its own files need.
//
//	conns := listen.Conns{Most: listen.Room(1)}
//	s := &http.Server{ConnState: func(c net.Conn, state http.ConnState) { conns.Track(c, state) }}
//
// At the limit, a new connection takes the place of the one that has waited longest
// without a request. If all have one, it has to wait.
package listen

import (
	"container/list"
	"fmt"
	"net"
	"sync"
	"time"
)

// HeadTime is how long the head of a request may take to arrive.
const HeadTime = 10 * time.Second

// OtherFiles is the number of open files of a process, not counting the connections of
// requests in flight: for a replay 64 connections opened ahead, for a server those to its
// metrics, and the files that it reads and writes.
const OtherFiles = 128

// Room returns how many connections a process has room for if each takes a number of open
// files.
func Room(each int) int {
	const most = 1 << 20
	limit := OpenFiles()
	if limit == 0 {
		return most
	}
	return min(max((limit-min(OtherFiles, limit/2))/each, 1), most)
}

// Conns are the open connections of a server. Its methods are safe for concurrent use.
type Conns struct {
	Most int // 0 is no limit

	mu      sync.Mutex
	changed sync.Cond // fewer are open, or they are being closed
	open    map[net.Conn]*list.Element
	waiting list.List // those without a request, the one that has waited longest first
	closing bool
}

// Track follows the state of a connection: an http.ConnState or a fasthttp.ConnState. A
// new connection waits until there is room. One that is hijacked needs [Conns.Remove].
func (c *Conns) Track(conn net.Conn, state fmt.Stringer) {
	switch state.String() {
	case "new":
		c.Add(conn)
	case "idle":
		c.Waits(conn)
	case "closed":
		c.Remove(conn)
	default:
		c.Works(conn)
	}
}

// Add adds a connection without a request, once there is room.
func (c *Conns) Add(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open, c.changed.L = map[net.Conn]*list.Element{}, &c.mu
	}
	for c.Most > 0 && len(c.open) >= c.Most && !c.closing {
		if c.waiting.Len() > 0 {
			longest := c.waiting.Front().Value.(net.Conn)
			c.leaves(longest)
			longest.Close() // it is removed by its goroutine
		}
		c.changed.Wait()
	}
	c.open[conn] = nil
	c.waits(conn)
}

// Waits says that a connection waits for a request.
func (c *Conns) Waits(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits(conn)
}

func (c *Conns) waits(conn net.Conn) {
	switch e, open := c.open[conn]; {
	case open && c.closing:
		conn.Close()
	case open && e == nil:
		c.open[conn] = c.waiting.PushBack(conn)
		c.changed.Signal()
	}
}

// Works says that a connection has a request.
func (c *Conns) Works(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaves(conn)
}

func (c *Conns) leaves(conn net.Conn) {
	if e := c.open[conn]; e != nil {
		c.waiting.Remove(e)
		c.open[conn] = nil
	}
}

// Remove removes a connection that is closed.
func (c *Conns) Remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.open[conn]; open {
		c.leaves(conn)
		delete(c.open, conn)
		c.changed.Signal()
	}
}

// Close closes the connections without a request, and others when theirs has ended.
func (c *Conns) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	for e := c.waiting.Front(); e != nil; e = e.Next() {
		e.Value.(net.Conn).Close()
	}
	if c.changed.L != nil {
		c.changed.Broadcast()
	}
}

// CloseAll closes all connections.
func (c *Conns) CloseAll() {
	c.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		conn.Close()
	}
}
