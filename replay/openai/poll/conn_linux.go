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

	"moontide/replay/stamp"
)

// Conn is a connection read by a [Loop]. It carries one exchange at a time.
type Conn struct {
	fd       int
	loop     *Loop
	over     chan struct{} // receives at the end of each exchange
	writable chan struct{} // receives when more can be written

	// Owned by the caller, between Begin and the end of Wait.
	begun    Handler
	sent     time.Time // before the first byte
	unsent   [][]byte
	writeErr error

	// Owned by the loop's thread, during an exchange.
	handler   Handler
	deadline  time.Time
	heapPlace int  // index in Loop.deadlines plus one; 0 if not in it
	watched   bool // the kernel reports events of this descriptor
	pending   bool // there may be more to read
	queued    bool // in Loop.unread
	// If not zero, pending bytes may have arrived at any time since: the loop did
	// not know of the exchange yet and did not read them.
	since time.Time
}

// Adopt takes over a TCP connection that nothing else reads or writes. It closes
// the connection if it fails.
func (l *Loop) Adopt(c net.Conn) (*Conn, error) {
	// Go's poller would wake a thread for each segment. The loop uses a duplicate
	// descriptor; closing c removes the original from Go's poller.
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
		stamp.Enable(fd)
	})
	if controlErr != nil {
		return nil, controlErr
	}
	if err != nil {
		return nil, err
	}
	return &Conn{fd: fd, loop: l, over: make(chan struct{}, 1), writable: make(chan struct{}, 1)}, nil
}

// Begin writes as much of the request, given in parts, as the kernel accepts
// without blocking, and makes the loop read the answer for h until the deadline.
// Wait must follow.
func (c *Conn) Begin(h Handler, deadline time.Time, parts ...[]byte) {
	c.begun, c.sent = h, time.Now()
	c.unsent, c.writeErr = c.write(parts)
	c.loop.send(command{kind: begin, conn: c, handler: h, deadline: deadline, since: c.sent})
}

// Wait sends the rest of the request and returns at the end of the exchange: when
// the handler is done, the connection ends, or ctx does. sent is the instant
// before the first byte was written, wrote reports whether all bytes were, and err
// is the write error. An answer may arrive despite a write error.
func (c *Conn) Wait(ctx context.Context) (sent time.Time, wrote bool, err error) {
	var writable <-chan struct{}
	if len(c.unsent) > 0 && c.writeErr == nil {
		writable = c.writable
		c.loop.writers.Add(1)
		defer c.loop.writers.Add(-1)
		c.loop.send(command{kind: reportWritable, conn: c})
	}
	done := ctx.Done()
	for {
		select {
		case <-c.over:
			wrote, err = len(c.unsent) == 0, c.writeErr
			c.begun, c.unsent = nil, nil
			return c.sent, wrote, err
		case <-writable:
			if c.unsent, c.writeErr = c.write(c.unsent); len(c.unsent) == 0 || c.writeErr != nil {
				writable = nil
			}
		case <-done:
			done = nil
			c.loop.send(command{kind: end, conn: c, handler: c.begun, err: ctx.Err()})
		}
	}
}

// write writes as much as the kernel accepts without blocking and returns the
// rest.
func (c *Conn) write(parts [][]byte) ([][]byte, error) {
	for {
		for len(parts) > 0 && len(parts[0]) == 0 {
			parts = parts[1:]
		}
		if len(parts) == 0 {
			return nil, nil
		}
		n, errno := sendmsg(c.fd, parts)
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

const maxVectors = 4 // parts per call

// sendmsg writes as much of the first parts as the kernel accepts without
// blocking. It is a raw system call: a large write takes so long that the
// scheduler would give the CPU core away and delay the next request.
func sendmsg(fd int, parts [][]byte) (n int, errno unix.Errno) {
	var vectors [maxVectors]unix.Iovec
	used := 0
	for _, part := range parts[:min(len(parts), maxVectors)] {
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

// emptied records that everything was read.
func (c *Conn) emptied() { c.pending, c.since = false, time.Time{} }

// SetDeadline changes the deadline of the exchange. Only the Handler may call it.
// The error is always nil.
func (c *Conn) SetDeadline(deadline time.Time) error {
	c.loop.deadlines.set(c, deadline)
	return nil
}

// Alive reports whether an idle connection is usable: the peer has neither closed
// it nor sent unrequested bytes.
func (c *Conn) Alive() bool {
	var b [1]byte
	_, _, err := unix.Recvfrom(c.fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err == unix.EAGAIN
}

// Close closes an idle connection.
func (c *Conn) Close() error { return unix.Close(c.fd) }
