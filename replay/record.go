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
	Server    Class = "server"    // an error object inside the stream
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
}

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
	// Due is what the trace asked for, Ready the latest of due, a free slot
	// and the end of the turn before. Sent, First and Last are absent where
	// there was no such moment.
	Due, Ready        time.Duration
	Sent, First, Last Instant
	Done              time.Duration
	Gaps              []time.Duration
	Chunks            int // token chunks
	Counts            Counts
	Status            int
	Class             Class
	Error             string
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
		Gaps: o.Gaps, Counts: o.Counts,
		Status: o.Status, Class: o.Class, Error: o.Error,
	}
	if rec.First.Set {
		rec.Chunks = len(o.Gaps) + 1
	}
	return rec
}
