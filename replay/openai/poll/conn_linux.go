package poll

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Conn is a connection that a loop reads. One exchange uses it at a time.
type Conn struct {
	fd   int
	loop *Loop
	over chan struct{} // gets one value at the end of each exchange
	room chan struct{} // gets a value when more can be written

	// Of the loop's thread, between the beginning and the end of an exchange.
	handler  Handler
	deadline time.Time
	place    int  // among the deadlines
	watched  bool // the kernel tells the loop of this descriptor
	pending  bool // there may be more to read
	// Where it is not zero, what is pending may have come since then: before
	// the loop knew of the exchange, it looked here and read nothing.
	since time.Time
}

// Adopt takes over a TCP connection that nobody reads or writes. It is closed
// if that fails.
func (l *Loop) Adopt(c net.Conn) (*Conn, error) {
	// Under Go's own poller each segment would wake a thread to no purpose:
	// the loop has a descriptor of its own, and the poller forgets the other.
	defer c.Close()
	under, ok := c.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("%T has no descriptor", c)
	}
	raw, err := under.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	controlErr := raw.Control(func(of uintptr) {
		if fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0); err != nil {
			err = os.NewSyscallError("fcntl", err)
			return
		}
		stamp(fd)
	})
	if controlErr != nil {
		return nil, controlErr
	}
	if err != nil {
		return nil, err
	}
	return &Conn{fd: fd, loop: l, over: make(chan struct{}, 1), room: make(chan struct{}, 1)}, nil
}

// Exchange sends parts, one behind the other, has the loop read what comes
// back for h, and returns when h has had enough or the connection ended. When
// ctx ends or the deadline passes, so does the exchange. sent is the instant
// before the first byte was handed to the kernel; wrote says whether all were.
// err is what writing failed with: an answer may come even so.
func (c *Conn) Exchange(ctx context.Context, h Handler, deadline time.Time, parts ...[]byte) (sent time.Time, wrote bool, err error) {
	sent = time.Now()
	parts, err = c.write(parts)
	c.loop.do(command{kind: begin, conn: c, handler: h, deadline: deadline, since: sent})
	var room <-chan struct{}
	if len(parts) > 0 && err == nil {
		room = c.room
		c.loop.writers.Add(1)
		defer c.loop.writers.Add(-1)
		c.loop.do(command{kind: wantRoom, conn: c})
	}
	done := ctx.Done()
	for {
		select {
		case <-c.over:
			return sent, len(parts) == 0, err
		case <-room:
			if parts, err = c.write(parts); len(parts) == 0 || err != nil {
				room = nil
			}
		case <-done:
			done = nil
			c.loop.do(command{kind: end, conn: c, handler: h, err: ctx.Err()})
		}
	}
}

// write hands over what the kernel takes now and returns what is left.
func (c *Conn) write(parts [][]byte) ([][]byte, error) {
	for {
		for len(parts) > 0 && len(parts[0]) == 0 {
			parts = parts[1:]
		}
		if len(parts) == 0 {
			return nil, nil
		}
		n, err := unix.SendmsgBuffers(c.fd, parts, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		switch err {
		case nil:
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return parts, nil
		default:
			return parts, os.NewSyscallError("write", err)
		}
		left := make([][]byte, 0, len(parts))
		for _, part := range parts {
			taken := min(n, len(part))
			n -= taken
			left = append(left, part[taken:])
		}
		parts = left
	}
}

// emptied notes that all that had arrived was read.
func (c *Conn) emptied() { c.pending, c.since = false, time.Time{} }

// SetDeadline moves the deadline of the exchange under way. It is for the
// Handler.
func (c *Conn) SetDeadline(deadline time.Time) { c.loop.deadlines.set(c, deadline) }

// Alive reports whether a connection that is not in use can be: there must be
// nothing to read, neither an end nor bytes that nobody asked for.
func (c *Conn) Alive() bool {
	var b [1]byte
	_, _, err := unix.Recvfrom(c.fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err == unix.EAGAIN
}

// Close closes a connection that is not in use.
func (c *Conn) Close() error { return unix.Close(c.fd) }
