// Package poll reads many connections with one thread and tells for everything it
// reads when the kernel received it.
//
//	loop, err := poll.New()
//	conn, err := loop.Adopt(tcpConn) // dialed in the usual way
//	conn.Begin(handler, deadline, request) // does not block
//	sent, wrote, err := conn.Wait(ctx)
//
// The [Handler] gets what comes back.
//
// A program that reads ten thousand streams is late for most of what it reads: if
// a server writes to all of them at once, the last is read tens of milliseconds
// after it arrived. But the kernel stamps each segment that comes in
// (SO_TIMESTAMPNS). The [Loop] reads the stamps along with the bytes, so instants
// are right to microseconds whatever the program was doing, and [Loop.Delays]
// tells how late it was itself.
//
// It exists on Linux only; elsewhere New fails with [errors.ErrUnsupported].
package poll

import (
	"errors"
	"time"
)

// Handler gets what arrives on a connection during one exchange. The thread of the
// loop calls it, one call at a time: it must not block.
type Handler interface {
	// Feed takes the bytes of one read, valid during the call. It returns true
	// to end the exchange. It may call SetDeadline of the connection.
	Feed(b []byte, at Arrival) (over bool)
	// End ends the exchange: nothing more will arrive, because of io.EOF, an
	// error of reading, [os.ErrDeadlineExceeded], or the context's error.
	End(err error, at Arrival)
}

// Arrival is the instant at which something arrived.
type Arrival struct {
	time.Time // monotonic
	// Kernel tells that the instant is the kernel's stamp of the last segment of
	// the read. Otherwise it is the instant of the read.
	Kernel bool
	// Unread is the longest that any byte of the read can have been readable
	// before, because the loop was busy or did not know of the exchange. Of
	// several segments, the first came at most so much before the last. The time
	// to wake an idle loop is not in it, but in Delays.
	Unread time.Duration
}

// ErrClosed ends the exchanges of a loop that is closed.
var ErrClosed = errors.New("the loop was closed")
