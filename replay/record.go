package replay

import (
	"time"

	"moontide/trace"
)

// Class says how a request ended.
type Class string

// The classes of errors. A request that ended well has class OK.
const (
	OK        Class = ""
	Connect   Class = "connect"   // no connection, or it broke before an answer
	Timeout   Class = "timeout"   // the answer was not complete in time
	HTTPError Class = "status"    // an HTTP status other than 200
	Server    Class = "server"    // an error inside the stream, or an answer that the server says it broke off
	Protocol  Class = "protocol"  // an answer that is not what the API says
	Truncated Class = "truncated" // a stream that ended without its end
	Empty     Class = "empty"     // a complete answer without a single token
	Canceled  Class = "canceled"  // ended by the user
)

// Outcome is what a [Call] has to tell once it is over.
type Outcome struct {
	// Sent is when the first byte was handed to the kernel, First and Last
	// when the first and the last token chunk arrived, Done when the stream
	// ended. All are monotonic; Sent, First and Last are zero where there was
	// no such moment.
	Sent, First, Last, Done time.Time
	// Gaps are the times between consecutive token chunks: one fewer than
	// there were chunks.
	Gaps   []time.Duration
	Counts Counts
	Status int // HTTP status, 0 where there was none
	Class  Class
	Error  string // what went wrong, on one line, for people
	// RetryAfter is how long a server that refused the request for now asked to
	// wait from Done on; 0 where it named no time.
	RetryAfter time.Duration
	// ConnectTime is how long the request waited for its connection, which is part
	// of Sent being late and not the client's doing: it is how long the server
	// and the network took to open one.
	ConnectTime time.Duration
	// Stamps says whose instants First, Last and Gaps are of.
	Stamps Stamps
	// FirstStampError is the most by which First may be too late, and MaxStampError the most by
	// which any of them may be, because the client
	// was late itself and read at once what had come apart. They are known where
	// Stamps are the kernel's.
	FirstStampError, MaxStampError time.Duration
	// Target is which of several servers it went to, from 0.
	Target int
}

// Stamps says who took the instants of arrival.
type Stamps string

const (
	KernelStamps Stamps = "kernel" // as each segment came in
	ClientStamps Stamps = "client" // as it was read, which may be late
)

// Counts are the tokens of a request as the server reported them. What it did
// not report is absent.
type Counts struct {
	Input, Output, Cached trace.Opt[int]
}

// Instant is a moment since the run's start. It may be absent.
type Instant = trace.Opt[time.Duration]

// Record is one request of a run: the trace row it came from and what
// happened. Instants are since the run's start; every duration is derived.
type Record struct {
	trace.Request
	// Row is the row's number in the replayed trace, from 0.
	Row int
	// Due is what the trace asked for, Ready the latest of due, a free slot,
	// the end of the turn before and, of a request that was sent again, the
	// instant from which it might be: the other instants are of the last time. Sent, First and Last are absent where
	// there was no such moment.
	Due, Ready        time.Duration
	Sent, First, Last Instant
	Done              time.Duration
	ConnectTime       time.Duration // of the time between Ready and Sent, the wait for a connection
	Gaps              []time.Duration
	Chunks            int           // token chunks
	Stamps            Stamps        // whose First, Last and Gaps are; "" where it is not known
	FirstStampError   time.Duration // the most by which First may be too late
	MaxStampError     time.Duration // the most by which one of them may be too late
	Target            int           // which of several servers it went to
	Counts            Counts
	Retries           int // how often it was sent again
	Status            int
	Class             Class
	Error             string
}

// ClientLag is the client's own lateness: what passed between the instant at
// which the request could be sent and the one at which it was, less the wait
// for a connection. It is absent where nothing was sent.
func (r *Record) ClientLag() Instant {
	if !r.Sent.Set {
		return Instant{}
	}
	return trace.Some(r.Sent.Value - r.Ready - r.ConnectTime)
}

// newRecord places an outcome on the run's clock.
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
