package http1

import (
	"bytes"
	"errors"
	"io"
	"time"

	"moontide/replay/openai/poll"
)

const (
	// restTime limits the reading of the rest of a response for Linger and Drain,
	// drainBytes that for Drain, whose only purpose is to reuse the connection.
	restTime   = time.Second
	drainBytes = 64 << 10
)

// Sink receives one response. Its methods are called by the thread that reads the
// connection and must not block; b is valid during the call.
type Sink interface {
	Head(h *Head) Action
	Body(b []byte, at poll.Arrival) Action
	// End is called once, unless an Action was Stop. err is io.EOF if the body
	// is complete, io.ErrUnexpectedEOF if it was cut short, a [*HeadError],
	// [ErrChunked], [ErrNotStarted], an [*IdleError], os.ErrDeadlineExceeded, the
	// context's error or the error of reading.
	End(err error)
}

// Action tells a Response how to treat the rest of its bytes.
type Action uint8

const (
	Await  Action = iota // read everything; the content has not started
	Read                 // read everything; the content has started
	Linger               // read the rest if it arrives within 1 s; End follows in any case
	Drain                // read the rest if it arrives within 1 s and 64 KiB
	Stop                 // read nothing more; the connection cannot be reused
)

// Response parses one response from the pieces that arrive and passes its body on.
// It buffers nothing but the head.
type Response struct {
	Sink     Sink
	Deadline time.Time // ends the response; zero means none
	// StartDeadline ends the response if its content has not started by then; zero
	// means none.
	StartDeadline time.Time
	// IdleTimeout ends the response if, once its content has started, nothing
	// arrives for this long; 0 means none.
	IdleTimeout time.Duration

	// Received is the instant of the last bytes, or of the end unless only
	// draining was cut short.
	Received time.Time
	// Reusable reports whether the connection can carry another request. It is
	// valid after [Conn.Wait].
	Reusable bool

	conn      poll.Transport // nil: the deadline is never moved
	state     state
	head      []byte // until it is complete
	interim   int    // bytes of interim heads
	closing   bool   // the server closes the connection
	body      body
	inflater  *Inflater // of an encoded body, or nil
	action    Action    // the last one
	deadlines deadlines
	drained   int // bytes
}

type state uint8

const (
	inHead state = iota
	inBody
	draining
	over
)

// PartOfHead reports whether the response ended within its head.
func (r *Response) PartOfHead() bool { return len(r.head) > 0 || r.interim > 0 }

// HeadError reports a head that is not HTTP.
type HeadError struct{ err error }

func (e *HeadError) Error() string { return e.err.Error() }
func (e *HeadError) Unwrap() error { return e.err }

// Feed implements poll.Handler: it handles received bytes and reports whether the
// response is over.
func (r *Response) Feed(b []byte, at poll.Arrival) bool {
	if r.take(b, at); r.state == over {
		return true
	}
	if until, moved := r.deadlines.received(r.action, at.Time); moved && r.conn != nil {
		r.conn.SetDeadline(until)
	}
	return false
}

func (r *Response) take(b []byte, at poll.Arrival) {
	r.Received = at.Time
	if r.state == inHead {
		b = r.feedHead(b)
	}
	for r.state == inBody || r.state == draining {
		data, rest, err := r.body.next(b)
		b = rest
		switch {
		case err != nil:
			r.Reusable = err == io.EOF && len(rest) == 0 && !r.closing
			r.endBody(err, at)
		case len(data) == 0:
			return
		default:
			drains := r.state == draining
			r.pass(data, at)
			if drains {
				if r.drained += len(data); r.drained >= drainBytes {
					r.state = over
				}
			}
		}
	}
	if r.state == over && r.inflater != nil {
		r.inflater.Close()
	}
}

// pass passes data of the body on, decoded.
func (r *Response) pass(data []byte, at poll.Arrival) {
	if r.inflater == nil {
		r.do(r.Sink.Body(data, at))
		return
	}
	r.inflater.Feed(data)
	for r.state != over {
		piece, err := r.inflater.Next()
		if err == io.EOF { // the framing tells where the body ends
			r.inflater.Feed(nil)
			return
		}
		if err != nil {
			r.finish(err)
			return
		}
		if piece == nil {
			return
		}
		at.Kernel = false // the stamp is not that of the piece
		r.do(r.Sink.Body(piece, at))
	}
}

// endBody ends a body. err is io.EOF if its framing is complete.
func (r *Response) endBody(err error, at poll.Arrival) {
	if r.inflater != nil && err == io.EOF {
		r.inflater.End()
		if r.pass(nil, at); r.state == over {
			return
		}
	}
	r.finish(err)
}

// End implements poll.Handler: it handles the end of the connection, of its
// deadline or of the context.
func (r *Response) End(err error, at poll.Arrival) {
	if r.state != draining {
		r.Received = at.Time
	}
	err = r.deadlines.explain(err)
	if r.state != inHead {
		err = r.body.end(err)
	}
	r.endBody(err, at)
	if r.inflater != nil {
		r.inflater.Close()
	}
}

func (r *Response) finish(err error) {
	r.state = over
	r.Sink.End(err)
}

func (r *Response) do(a Action) {
	switch {
	case a == Stop:
		r.state = over
	case r.state == draining: // it stays so
	case a == Drain:
		r.state = draining
		fallthrough
	default:
		r.action = a
	}
}

// keepHead keeps the rest of b, an incomplete head. What precedes it are interim
// heads.
func (r *Response) keepHead(b, rest []byte) {
	r.interim += len(b) - len(rest)
	if len(r.head) != len(rest) { // else it is there already
		r.head = append(r.head[:0], rest...)
	}
	switch {
	case r.interim > MaxInterim:
		r.finish(&HeadError{ErrInterim})
	case len(rest) > maxHead:
		r.finish(&HeadError{errLongHead})
	}
}

// feedHead consumes bytes of the head and returns the bytes after it.
func (r *Response) feedHead(b []byte) []byte {
	lineEnded := bytes.IndexByte(b, '\n') >= 0 // a head ends with a line
	if len(r.head) > 0 {
		r.head = append(r.head, b...)
		b = r.head
	}
	var h Head
	rest, err := b, errNeedMore
	if lineEnded || len(b) >= maxHead {
		h, rest, err = parseHead(b)
	}
	switch {
	case err == nil:
		r.head, r.closing, r.body = nil, h.closing, newBody(h.length)
		r.state = inBody
		if r.do(r.Sink.Head(&h)); h.Gzip() && h.length != 0 && r.state != over {
			r.inflater = NewInflater()
		}
	case errors.Is(err, errNeedMore):
		r.keepHead(b, rest)
		return nil
	default:
		r.head = nil
		r.finish(&HeadError{err})
	}
	return rest
}
