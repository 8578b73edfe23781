package replay

import (
	"time"

	"moontide/trace"
)

// Class is how a request ended.
type Class string

// The classes. A successful request has class OK.
const (
	OK        Class = ""
	Connect   Class = "connect"   // no connection, or it broke before an answer came
	Timeout   Class = "timeout"   // no complete answer in time
	HTTPError Class = "status"    // an HTTP status other than 200
	Server    Class = "server"    // an error inside the stream, or the server aborted the answer
	Protocol  Class = "protocol"  // an answer that violates the API
	Truncated Class = "truncated" // a stream that ended without its end marker
	Empty     Class = "empty"     // a complete answer without a single token
	Canceled  Class = "canceled"  // by the user
)

// Outcome is the result of a [Call].
type Outcome struct {
	// Sent is when the first byte was handed to the kernel, First and Last when
	// the first and the last token chunk arrived, Done when the stream ended. All
	// have monotonic clock readings. Sent, First and Last are zero if it did not
	// happen.
	Sent, First, Last, Done time.Time
	// Gaps are the times between consecutive token chunks, one fewer than chunks.
	Gaps   []time.Duration
	Counts Counts
	Status int // HTTP status, 0 if there was none
	Class  Class
	Error  string // what went wrong, on one line
	// RetryAfter is the wait after Done that the server asked for when it refused
	// the request; 0 if it named none.
	RetryAfter time.Duration
	// ConnectTime is how long sending waited for a connection, which the server and
	// the network cause, not the client.
	ConnectTime time.Duration
	// Stamps tells who took the timestamps First, Last and Gaps.
	Stamps Stamps
	// FirstStampError bounds how much too late First may be, and MaxStampError how
	// much any timestamp may be, because the client read at once what had arrived
	// separately. They are known for KernelStamps.
	FirstStampError, MaxStampError time.Duration
	// Target is the index of the server among several.
	Target int
}

// Stamps tells who took the timestamps of arrivals.
type Stamps string

const (
	KernelStamps Stamps = "kernel" // when each segment arrived
	ClientStamps Stamps = "client" // when it was read, which may be late
)

// Counts are the token counts of a request as the server reported them, absent if
// it did not.
type Counts struct {
	Input, Output, Cached trace.Opt[int]
}

// Instant is a time since the start of the run. It may be absent.
type Instant = trace.Opt[time.Duration]

// Record is one request of a run: its trace row and what happened. Instants are
// since the start of the run; durations are derived from them.
type Record struct {
	trace.Request
	// Row is the row's number in the replayed trace, from 0.
	Row int
	// Due is the scheduled time. Ready is the latest of Due, a free slot, the end
	// of the turn before, and the time of the last retry, to which the other
	// instants belong too. Sent, First and Last are absent if it did not happen.
	Due, Ready        time.Duration
	Sent, First, Last Instant
	Done              time.Duration
	ConnectTime       time.Duration // part of Sent - Ready that waited for a connection
	Gaps              []time.Duration
	Chunks            int           // token chunks
	Stamps            Stamps        // who took First, Last and Gaps; "" is unknown
	FirstStampError   time.Duration // largest possible error of First
	MaxStampError     time.Duration // and of any timestamp
	Target            int           // index of the server
	Counts            Counts
	Retries           int // number of times it was sent again
	Status            int
	Class             Class
	Error             string
}

// ClientLag is the client's own lateness: Sent - Ready without the wait for a
// connection. It is absent if nothing was sent.
func (r *Record) ClientLag() Instant {
	if !r.Sent.Set {
		return Instant{}
	}
	return trace.Some(r.Sent.Value - r.Ready - r.ConnectTime)
}

// newRecord converts an outcome to the run's clock.
func newRecord(j job, ready time.Duration, start time.Time, o Outcome) Record {
	since := func(t time.Time) Instant {
		if t.IsZero() {
			return Instant{}
		}
		return trace.Some(t.Sub(start))
	}
	rec := Record{
		Request: j.req, Row: j.row,
		Due: j.due, Ready: ready,
		Sent: since(o.Sent), First: since(o.First), Last: since(o.Last), Done: o.Done.Sub(start),
		ConnectTime: o.ConnectTime, Gaps: o.Gaps, Stamps: o.Stamps, FirstStampError: o.FirstStampError, MaxStampError: o.MaxStampError, Target: o.Target, Counts: o.Counts,
		Status: o.Status, Class: o.Class, Error: o.Error,
	}
	if rec.First.Set {
		rec.Chunks = len(o.Gaps) + 1
	}
	return rec
}
