package replay

import (
	"time"

	"moontide/replay/transcript"
	"moontide/trace"
)

// Class classifies the outcome of a request.
type Class string

// The classes. A successful request has class OK.
const (
	OK          Class = ""
	ClientFault Class = "client"    // the client could not send: no file descriptor or local port, unknown host, no prompt
	Connect     Class = "connect"   // no connection, or it broke before a response
	Timeout     Class = "timeout"   // no complete response in time
	HTTPError   Class = "status"    // an HTTP status other than 200
	Server      Class = "server"    // an error in the stream, or a response aborted by the server
	Protocol    Class = "protocol"  // a response that violates the API
	Truncated   Class = "truncated" // a stream that ended without its end marker
	Empty       Class = "empty"     // a complete response without tokens
	Canceled    Class = "canceled"  // by the user
	Abandoned   Class = "abandoned" // closed by the client because the user would have left; not a failure
)

// Failed reports whether a request failed. An abandoned one did not.
func (c Class) Failed() bool { return c != OK && c != Abandoned }

// Outcome is the result of a [Call].
type Outcome struct {
	// Sent is the instant before the first byte was written, First and Last are
	// the arrivals of the first and the last token chunk, and Done is the end of
	// the stream. All have monotonic clock readings. Sent, First and Last are zero
	// if not reached.
	Sent, First, Last, Done time.Time
	// FirstVisible is the arrival of the first token chunk that is not reasoning. Zero
	// means First, or that there was none if ReasoningOnly is set.
	FirstVisible  time.Time
	ReasoningOnly bool
	// Gaps holds the times between consecutive token chunks.
	Gaps []time.Duration
	// ChunkTokens holds the tokens of each token chunk, nil if the server does not
	// report them or if all chunks have one token.
	ChunkTokens []int32
	Counts      Counts
	Status      int // HTTP status, 0 if there was none
	Class       Class
	Error       string // error message, on one line
	// MissingDone reports that the response is complete except for its end marker.
	MissingDone bool
	// RetryAfter is the wait after Done requested by a server that refused the
	// request.
	RetryAfter trace.Opt[time.Duration]
	// ConnectTime is how long sending waited for a connection, a delay caused by
	// the server and the network, not the client.
	ConnectTime time.Duration
	// Stamps is the source of First, Last and Gaps.
	Stamps Stamps
	// FirstStampError is the largest possible error of First, and MaxStampError
	// that of any timestamp: data that arrived separately may have been read
	// together and given too late a timestamp. They are known for KernelStamps
	// only.
	FirstStampError, MaxStampError time.Duration
	// Target is the index of the server if there are several.
	Target int
	Model  string // requested model if there are several
	Base   Base   // of the prompt
}

// Base is what a prompt with live responses continues.
type Base struct {
	// Row is the number of the row whose prompt and response the prompt continues,
	// absent if there is none. See package transcript.
	Row    trace.Opt[int]
	Answer transcript.Generated // to that row
}

// Stamps is the source of arrival timestamps.
type Stamps string

const (
	KernelStamps Stamps = "kernel" // when each segment arrived
	ClientStamps Stamps = "client" // when the segment was read, which may be late
)

// Counts holds the token counts reported by the server, absent if not reported.
type Counts struct {
	Input, Output, Cached trace.Opt[int]
	Reasoning             trace.Opt[int] // the tokens of Output that are reasoning
}

// Instant is an optional time since the start of the run.
type Instant = trace.Opt[time.Duration]

// Record is one request of a run: its trace row and its outcome. Instants are
// since the start of the run; durations are derived from them.
type Record struct {
	trace.Request
	// Row is the row's number in the replayed trace, from 0.
	Row int
	Due time.Duration // scheduled time
	// Ready is the latest of Due, a free slot, the end of the previous turn, and
	// the last retry. The instants after it are those of the last attempt.
	Ready           time.Duration
	Sent            Instant         // before the first byte was written, absent if not reached
	First           Instant         // arrival of the first token chunk, absent if not reached
	FirstVisible    Instant         // arrival of the first token chunk that is not reasoning, absent if that is First or if there was none
	ReasoningOnly   bool            // all token chunks are reasoning
	Last            Instant         // arrival of the last token chunk, absent if not reached
	Done            time.Duration   // end of the stream
	ConnectTime     time.Duration   // part of Sent - Ready spent waiting for a connection
	Gaps            []time.Duration // between consecutive token chunks
	Chunks          int             // token chunks
	ChunkTokens     []int32         // tokens of each chunk; nil if unknown or all 1
	Stamps          Stamps          // source of First, Last and Gaps; "" means unknown
	FirstStampError time.Duration   // largest possible error of First
	MaxStampError   time.Duration   // largest possible error of any timestamp
	Target          int             // index of the server
	Model           string          // requested model; "" if all requests have the same
	Counts          Counts
	Base            Base
	Retries         int // retries performed
	Status          int
	Class           Class
	Error           string
	MissingDone     bool // the response is complete except for its end marker
}

// ClientLag returns the client's own lateness: Sent - Ready without the wait for a
// connection. It is absent if nothing was sent.
func (r *Record) ClientLag() Instant {
	if !r.Sent.Set {
		return Instant{}
	}
	return trace.Some(r.Sent.Value - r.Ready - r.ConnectTime)
}

// Visible returns the arrival of the first token chunk that is not reasoning, absent
// if there was none.
func (r *Record) Visible() Instant {
	switch {
	case r.ReasoningOnly:
		return Instant{}
	case r.FirstVisible.Set:
		return r.FirstVisible
	}
	return r.First
}

// newRecord makes a record of an outcome, on the run's clock.
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
		ReasoningOnly: o.ReasoningOnly,
		ConnectTime:   o.ConnectTime, Gaps: o.Gaps, ChunkTokens: o.ChunkTokens, Stamps: o.Stamps, FirstStampError: o.FirstStampError, MaxStampError: o.MaxStampError, Target: o.Target, Model: o.Model, Counts: o.Counts, Base: o.Base,
		Status: o.Status, Class: o.Class, Error: o.Error, MissingDone: o.MissingDone,
	}
	if rec.First.Set {
		rec.Chunks = len(o.Gaps) + 1
	}
	if o.FirstVisible.After(o.First) {
		rec.FirstVisible = since(o.FirstVisible)
	}
	return rec
}

// TokenSource is where a request's number of output tokens comes from.
type TokenSource uint8

// The sources. Only ReportedTokens is exact; the others are estimates.
const (
	ReportedTokens     TokenSource = iota // the server's usage
	UnreportedTokens                      // token chunks: the server reported no usage
	ContradictedTokens                    // token chunks: the stream contradicts the usage
)

// OutputTokens returns the number of output tokens and its source.
//
// It is the server's count unless the stream contradicts it: the count is above the
// request's max_tokens, 0 although tokens arrived, or below the number of token
// chunks by more than 2 and by more than 1 %. A smaller difference is normal,
// because gateways divide chunks.
func (r *Record) OutputTokens() (tokens int, source TokenSource) {
	const few, share = 2, 100
	n, missing := r.Counts.Output, r.Chunks-r.Counts.Output.Value
	switch {
	case !n.Set:
		return r.Chunks, UnreportedTokens
	case n.Value > r.MaxTokens(),
		n.Value == 0 && r.Chunks > 0,
		missing > few && share*missing > r.Chunks:
		return r.Chunks, ContradictedTokens
	}
	return n.Value, ReportedTokens
}

// MaxTokens returns the max_tokens of the request: the OSL, but at least 1, because
// servers reject 0.
func (r *Record) MaxTokens() int { return max(r.OutputLength, 1) }
