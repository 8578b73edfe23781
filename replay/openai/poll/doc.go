// Package poll reads many connections with one thread, and says of everything
// it reads when the kernel received it.
//
// A program that reads ten thousand streams is late for most of what it reads:
// when a server writes to all of them at once, the last is read tens of
// milliseconds after it arrived. The kernel, however, notes the instant at
// which each segment comes in (SO_TIMESTAMPNS). A [Loop] reads it along with
// the bytes, so that an instant is right to microseconds whatever the program
// was doing, and reports in [Loop.Delays] how late it was itself.
//
// Use it so: [New] starts a loop, [Loop.Adopt] takes over a connection that
// was dialed in the usual way, [Conn.Exchange] sends a request and gives what
// comes back to a [Handler]. A connection can be used again after that. Who has
// to send on time takes its two halves: [Conn.Begin] sends and does not wait.
//
// It exists on Linux. Elsewhere New fails with [errors.ErrUnsupported].
package poll

import (
	"errors"
	"time"
)

// Handler gets what arrives on a connection during one exchange. The loop
// calls it on its thread, one call at a time: it must not wait for anything.
type Handler interface {
	// Arrived takes the bytes of one read, which are valid during the call.
	// It returns true when it has all that it wants, which ends the exchange.
	// It may call SetDeadline on the connection.
	Arrived(c *Conn, b []byte, at Arrival) (enough bool)
	// Ended says that no more will arrive, and why: io.EOF, what reading
	// failed with, [os.ErrDeadlineExceeded], or the context's error. It ends
	// the exchange.
	Ended(err error, at Arrival)
}

// Arrival is an instant at which something arrived.
type Arrival struct {
	time.Time // monotonic
	// Kernel says that the instant is the kernel's, of the last segment that
	// a read took. Otherwise it is that of the read.
	Kernel bool
	// Unread is the longest that anything of a read can have waited for it
	// because the loop was busy or had not heard of the exchange. Where a read
	// took several segments, the first may have come earlier than the last by no
	// more than this. How long the system takes to wake a loop that was idle is
	// not in it, but in Delays.
	Unread time.Duration
}

// ErrClosed is the end of what was under way when its loop was closed.
var ErrClosed = errors.New("the loop was closed")
