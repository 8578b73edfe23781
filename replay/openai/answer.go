package openai

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"moontide/replay"
	"moontide/replay/openai/poll"
)

const (
	// afterEnd is how long a connection is given to end an answer of which
	// nothing more is needed: one behind its [DONE], or one that is an error.
	afterEnd = time.Second
	// maxAside bounds what is read of such an answer, in bytes.
	maxAside = 64 << 10
)

// answer is what has arrived of the answer to a request. It is fed what each
// read brought, and keeps of it next to nothing: ten thousand of them are
// under way at once. What it makes of an answer does not depend on where the
// network cut it.
type answer struct {
	// plain asks for the body as text of at most so many bytes, whatever it
	// is, in place of a stream of events.
	plain   int
	silence silence

	phase   phase
	head    head
	framing framing
	events  eventCutter
	stream  stream
	text    []byte // the head until it is whole; then the text of an error
	asideOf int    // bytes read in the phase aside
	arrived time.Time
	cause   error // what ended the head or the stream
	whole   bool  // the body was read to its end, and nothing lies behind it
}

// phase is how far an answer has come.
type phase uint8

const (
	inHead phase = iota
	inStream
	aside // nothing that is measured can come any more
	over
)

// errHead is a head that is none of HTTP.
type errHead struct{ error }

func (e errHead) Unwrap() error { return e.error }

// feed takes what arrived at an instant, and returns how far the answer is.
func (a *answer) feed(b []byte, at poll.Arrival) phase {
	a.arrived = at.Time
	if a.phase == inHead {
		if b = a.feedHead(b); a.phase == inHead || a.phase == over {
			return a.phase
		}
	}
	for a.phase != over {
		data, rest, err := a.framing.next(b)
		b = rest
		switch {
		case err != nil:
			a.endBody(err)
			a.whole = err == io.EOF && len(rest) == 0 && a.asideOf < maxAside
			a.phase = over
		case len(data) == 0:
			return a.phase
		case a.phase == inStream:
			a.feedStream(data, at)
		default:
			a.feedAside(data)
		}
	}
	return over
}

// feedHead takes bytes of the head and returns those that lie behind it.
func (a *answer) feedHead(b []byte) []byte {
	lineEnded := bytes.IndexByte(b, '\n') >= 0 // a head ends with a line
	if len(a.text) > 0 {
		a.text = append(a.text, b...)
		b = a.text
	}
	var head head
	var rest []byte
	err := errNeedMore
	if lineEnded || len(b) >= maxHead {
		head, rest, err = parseHead(b)
	}
	switch {
	case err == errNeedMore:
		if len(a.text) == 0 {
			a.text = append(a.text, b...)
		}
		return nil
	case err != nil:
		a.cause, a.text, a.phase = errHead{err}, nil, over
		return nil
	}
	a.head, a.text = head, nil
	a.framing = newFraming(head.length)
	a.phase = inStream
	if a.plain > 0 || head.status != statusOK {
		a.phase = aside
	} else if err := head.checkStream(); err != nil {
		a.cause, a.phase = err, over
	}
	return rest
}

const statusOK = 200

// feedStream takes bytes of the stream of events.
func (a *answer) feedStream(b []byte, at poll.Arrival) {
	for {
		data, rest, ok, err := a.events.next(b)
		if err == nil && ok {
			err = a.stream.take(data, at)
		}
		switch {
		case err != nil:
			a.cause, a.phase = err, over
			return
		case !ok:
			return
		case a.stream.done:
			a.endStream(len(rest))
			return
		}
		b = rest
	}
}

// endStream goes on behind [DONE], for the sake of the connection.
func (a *answer) endStream(behind int) {
	a.events = eventCutter{}
	a.asideOf = behind
	if a.phase = aside; a.head.closing {
		a.phase = over
	}
}

// feedAside takes bytes that no measurement depends on.
func (a *answer) feedAside(b []byte) {
	most := max(a.plain, maxAside)
	if !a.stream.done {
		a.text = append(a.text, b[:min(len(b), most-len(a.text))]...)
	}
	if a.asideOf += len(b); a.asideOf >= most {
		a.phase = over
	}
}

// endBody notes what ended the body, its framing or the connection, unless
// [DONE] came before.
func (a *answer) endBody(err error) {
	if a.stream.done {
		return
	}
	if failure := a.events.failure(); failure != nil {
		a.cause = failure
		return
	}
	if _, ok := a.events.end(); ok && a.phase == inStream {
		a.stream.done = true
		return
	}
	a.cause = err
}

// settled reports whether all that is still to come is without importance.
func (a *answer) settled() bool { return a.phase == aside && a.plain == 0 }

// end takes the end of the connection, or of the patience with it.
func (a *answer) end(err error, at poll.Arrival) {
	err = a.silence.explain(err)
	if a.phase == inHead {
		a.cause = err
	} else {
		a.endBody(a.framing.end(err))
	}
	if a.phase == inHead || a.phase == inStream {
		a.arrived = at.Time
	}
	a.phase = over
}

// judge says how the answer was, given what writing the request failed with.
func (a *answer) judge(writeErr error) (replay.Class, error) {
	switch {
	case a.head.status == 0:
		return a.judgeNone(writeErr)
	case a.head.status != statusOK:
		return replay.HTTPError, errors.New(errorText(a.head.status, a.text))
	case writeErr != nil:
		return replay.Connect, writeErr
	}
	if err := a.head.checkStream(); err != nil {
		return replay.Protocol, err
	}
	return a.stream.judge(a.cause)
}

// judgeNone judges what is no answer. A failed write is where it began.
func (a *answer) judgeNone(writeErr error) (replay.Class, error) {
	var malformed errHead
	switch {
	case writeErr != nil:
		return replay.Connect, fmt.Errorf("the connection broke before an answer: %w", writeErr)
	case errors.As(a.cause, &malformed):
		return replay.Protocol, fmt.Errorf("not an HTTP answer: %w", a.cause)
	}
	return replay.Connect, fmt.Errorf("the connection broke before an answer: %w", a.cause)
}
