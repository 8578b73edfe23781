package cluster

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

// Connections that have not shown the token are strangers: a run has room for a few, for
// a short time, so that they use up neither its file descriptors nor its memory.
const (
	maxStrangers = 64
	strangerTime = 10 * time.Second
)

// door is a listener that closes the connections of strangers after a time, and the
// oldest of too many.
type door struct {
	net.Listener
	mu        sync.Mutex
	strangers []*guest // the oldest first
}

// guest is a connection.
type guest struct {
	net.Conn
	door  *door
	leave *time.Timer // closes the connection
}

// Accept accepts a stranger.
func (d *door) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &guest{Conn: conn, door: d}
	g.leave = time.AfterFunc(strangerTime, func() { conn.Close() })
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.strangers = append(d.strangers, g); len(d.strangers) > maxStrangers {
		d.strangers[0].Conn.Close()
		d.strangers = d.strangers[1:]
	}
	return g, nil
}

// known ends that a connection is a stranger's.
func (g *guest) known() {
	g.leave.Stop()
	g.door.mu.Lock()
	defer g.door.mu.Unlock()
	g.door.strangers = slices.DeleteFunc(g.door.strangers, func(s *guest) bool { return s == g })
}

// Close closes the connection.
func (g *guest) Close() error {
	g.known()
	return g.Conn.Close()
}

// guestKey is the key of a request's [guest] in its context.
type guestKey struct{}

func withGuest(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, guestKey{}, conn)
}
