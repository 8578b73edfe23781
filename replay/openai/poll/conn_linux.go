package poll

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Conn is a connection that a loop reads. One exchange uses it at a time.
type Conn struct {
	fd   int
	loop *Loop
	over chan struct{} // gets one value at the end of each exchange
	room chan struct{} // gets a value when more can be written

	// Of whoever sends, between Begin and the end of Wait.
	begun     Handler
	exchanged time.Time // the instant before the first byte
	left      [][]byte  // what is still to be written
	failed    error     // of writing

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

// Exchange is Begin and Wait.
func (c *Conn) Exchange(ctx context.Context, h Handler, deadline time.Time, parts ...[]byte) (sent time.Time, wrote bool, err error) {
	c.Begin(h, deadline, parts...)
	return c.Wait(ctx)
}

// Begin hands the kernel as much of parts, one behind the other, as it takes at
// once, and has the loop read what comes back for h. Wait must follow. When the
// deadline passes, the exchange ends.
func (c *Conn) Begin(h Handler, deadline time.Time, parts ...[]byte) {
	c.begun, c.exchanged = h, time.Now()
	c.left, c.failed = c.write(parts)
	c.loop.do(command{kind: begin, conn: c, handler: h, deadline: deadline, since: c.exchanged})
}

// Wait sends what Begin left and returns when the handler has had enough or the
// connection ended. When ctx ends, so does the exchange. sent is the instant
// before the first byte was handed to the kernel; wrote says whether all were.
// err is what writing failed with: an answer may come even so.
func (c *Conn) Wait(ctx context.Context) (sent time.Time, wrote bool, err error) {
	var room <-chan struct{}
	if len(c.left) > 0 && c.failed == nil {
		room = c.room
		c.loop.writers.Add(1)
		defer c.loop.writers.Add(-1)
		c.loop.do(command{kind: wantRoom, conn: c})
	}
	done := ctx.Done()
	for {
		select {
		case <-c.over:
			wrote, err = len(c.left) == 0, c.failed
			c.begun, c.left = nil, nil
			return c.exchanged, wrote, err
		case <-room:
			if c.left, c.failed = c.write(c.left); len(c.left) == 0 || c.failed != nil {
				room = nil
			}
		case <-done:
			done = nil
			c.loop.do(command{kind: end, conn: c, handler: c.begun, err: ctx.Err()})
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
		n, errno := send(c.fd, parts)
		switch errno {
		case 0:
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return parts, nil
		default:
			return parts, os.NewSyscallError("write", errno)
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

// sentAtOnce is how many parts one call hands over.
const sentAtOnce = 4

// send hands over what the kernel takes of the first parts, without waiting. The
// scheduler need not hear of it: a large part takes long enough for it to give
// the processor away, and whoever has something to send on time would wait for
// its turn again.
func send(fd int, parts [][]byte) (n int, errno unix.Errno) {
	var vectors [sentAtOnce]unix.Iovec
	used := 0
	for _, part := range parts[:min(len(parts), sentAtOnce)] {
		if len(part) > 0 {
			vectors[used].Base = &part[0]
			vectors[used].SetLen(len(part))
			used++
		}
	}
	message := unix.Msghdr{Iov: &vectors[0]}
	message.SetIovlen(used)
	sent, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&message)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	if errno != 0 {
		return 0, errno
	}
	return int(sent), 0
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
