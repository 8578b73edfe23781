// Package poll reads many connections with one thread and reports when the kernel
// received the bytes.
//
//	loop, err := poll.New()
//	conn, err := loop.Adopt(tcpConn) // dialed in the usual way
//	conn.Begin(handler, deadline, request) // does not block
//	sent, wrote, err := conn.Wait(ctx)
//
// The [Handler] receives the answer.
//
// A program that reads ten thousand streams reads most of them late: if a server
// writes to all of them at once, the last is read tens of milliseconds after it
// arrived. But the kernel timestamps each incoming segment (SO_TIMESTAMPNS). The
// [Loop] reads the stamps along with the bytes, so instants are accurate to
// microseconds however busy the program is, and [Loop.Delays] reports how late the
// reads were.
//
// It works on Linux only; elsewhere New fails with [errors.ErrUnsupported].
package poll

import (
	"context"
	"errors"
	"time"
)

// Handler receives what arrives on a connection during one exchange. The loop's
// thread calls it, one call at a time, so it must not block.
type Handler interface {
	// Feed handles the bytes of one read, which are valid during the call. It
	// returns true to end the exchange. It may call [Conn.SetDeadline].
	Feed(b []byte, at Arrival) (over bool)
	// End is called when nothing more will arrive: err is io.EOF, a read error,
	// [os.ErrDeadlineExceeded], [ErrClosed] or the context's error.
	End(err error, at Arrival)
}

// Arrival is the instant at which bytes arrived.
type Arrival struct {
	time.Time // monotonic
	// Kernel reports whether the instant is the kernel's stamp of the last segment
	// of the read. Otherwise it is the instant of the read.
	Kernel bool
	// Unread is the longest time that any byte of the read may have waited to be
	// read because the loop was busy or did not know of the exchange. It bounds
	// the time from the first to the last segment of the read. The time to wake an
	// idle loop is excluded, but is included in Delays.
	Unread time.Duration
}

// Transport transfers the bytes of one exchange at a time, usually over its own
// connection. See [Conn] for the methods; [Loop.Adopt] makes one.
type Transport interface {
	Begin(h Handler, deadline time.Time, parts ...[]byte)
	Wait(ctx context.Context) (sent time.Time, wrote bool, err error)
	SetDeadline(deadline time.Time) error
	Alive() bool
	Close() error
}

// ErrClosed ends the exchanges of a closed loop.
var ErrClosed = errors.New("the loop was closed")
