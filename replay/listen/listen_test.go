package listen

import (
	"net"
	"testing"
	"testing/synctest"
)

// conn is a connection that a server serves until it is closed.
type conn struct {
	net.Conn
	conns  *Conns
	closed bool
}

func (c *conn) Close() error {
	c.closed = true
	go c.conns.Remove(c) // as the goroutine that serves it does
	return nil
}

// At the limit, the connection that has waited longest is closed for a new one. Without one
// that waits, the new one has to.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conns := &Conns{Most: 3}
		var all []*conn
		add := func() (admitted *bool) {
			c := &conn{conns: conns}
			all, admitted = append(all, c), new(bool)
			go func() { conns.Add(c); *admitted = true }()
			synctest.Wait()
			return admitted
		}
		closed := func(want ...bool) {
			t.Helper()
			for i, c := range all {
				if c.closed != (i < len(want) && want[i]) {
					t.Errorf("connection %d of %d: closed %t", i, len(all), c.closed)
				}
			}
		}
		for range 3 {
			add()
		}
		conns.Works(all[0])
		conns.Works(all[1])
		conns.Waits(all[0]) // later than 2
		if !*add() {
			t.Error("no place for the fourth")
		}
		closed(false, false, true)
		conns.Works(all[3])
		if !*add() {
			t.Error("no place for the fifth")
		}
		closed(true, false, true)
		conns.Works(all[4])
		waiting := add()
		if *waiting {
			t.Error("the sixth took the place of one that works")
		}
		conns.Waits(all[4])
		if synctest.Wait(); !*waiting {
			t.Error("the sixth waits although another waits for a request")
		}
		closed(true, false, true, false, true)
		conns.Works(all[5])
		waiting = add()
		conns.Remove(all[1])
		if synctest.Wait(); !*waiting {
			t.Error("the seventh waits although another has left")
		}
		conns.Works(all[6])
		waiting = add()
		conns.Close()
		if synctest.Wait(); !*waiting || !all[7].closed || all[6].closed {
			t.Error("at the end, those that wait are not closed, or others are")
		}
		conns.Waits(all[6])
		if conns.CloseAll(); !all[6].closed || !all[5].closed {
			t.Error("not all are closed")
		}
		synctest.Wait()
	})
}

// A server leaves open files to the rest of its process.
func TestRoom(t *testing.T) {
	limit := OpenFiles()
	if limit == 0 {
		t.Skip("no limit on open files")
	}
	if one, two := Room(1), Room(2); one >= limit || two > one/2 || two < 1 {
		t.Errorf("room for %d and %d with %d open files", one, two, limit)
	}
}
