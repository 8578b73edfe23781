package openai

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay"
	"moontide/replay/openai/http1"
	"moontide/replay/openai/poll"
	"moontide/replay/openai/sse"
	"moontide/trace"
)

const (
	statusOK = 200
	// maxErrorText is the number of bytes kept of an error response's body.
	maxErrorText = 64 << 10
)

// answer is the http1.Sink of one request. It keeps little of the response: ten
// thousand answers may be in flight.
type answer struct {
	// maxText, if not 0, makes the answer plain text of at most this many bytes,
	// whatever its status, instead of an event stream.
	maxText int

	status     int // 0 before the head
	retryAfter string
	location   string // of a redirect
	compressed bool   // the body arrived encoded
	unreadable bool   // the body is in no encoding that can be decoded
	reusable   bool   // the server keeps the connection open
	events     sse.Parser
	stream     stream
	text       []byte // body of an error response, or of any response if maxText is set
	err        error  // the error that ended the answer; nil after [DONE] or Stop
}

// answerError is an error with an explicit class.
type answerError struct {
	class replay.Class
	text  string
}

func (e answerError) Error() string { return e.text }

// Head implements http1.Sink.
func (a *answer) Head(h *http1.Head) http1.Action {
	a.status, a.reusable, a.location = h.Status, h.Reusable(), h.Location
	a.compressed = h.Gzip()
	if a.unreadable = !readable(h); a.unreadable {
		a.text = fmt.Appendf(nil, "a body encoded as %q", h.Encoding)
	}
	if h.Status == 429 || h.Status == 503 {
		a.retryAfter = h.RetryAfter
	}
	switch {
	case a.maxText > 0:
		return http1.Read
	case h.Status != statusOK:
		return http1.Drain
	}
	if a.err = checkStream(h); a.err != nil {
		return http1.Stop
	}
	return http1.Await
}

// readable reports whether a body arrives as plain text.
func readable(h *http1.Head) bool {
	return h.Encoding == "" || strings.EqualFold(h.Encoding, "identity") || h.Gzip()
}

// checkStream returns an error if a response is not an event stream.
func checkStream(h *http1.Head) error {
	if !strings.EqualFold(h.ContentType, "text/event-stream") {
		return answerError{replay.Protocol, fmt.Sprintf("content type is %q, not text/event-stream", h.ContentType)}
	}
	if !readable(h) {
		return answerError{replay.Protocol, fmt.Sprintf("content encoding is %q although none was asked for: turn compression off in the server or gateway", h.Encoding)}
	}
	return nil
}

// Body implements http1.Sink.
func (a *answer) Body(b []byte, at poll.Arrival) http1.Action {
	switch {
	case a.unreadable:
		return http1.Drain
	case a.maxText > 0:
		if a.addText(b, a.maxText); len(a.text) == a.maxText {
			return http1.Stop
		}
		return http1.Read
	case a.status != statusOK:
		a.addText(b, maxErrorText)
		return http1.Drain
	case a.stream.done:
		return http1.Drain
	}
	for {
		data, rest, ok, err := a.events.Next(b)
		if err == nil && ok {
			err = a.stream.take(data, at)
		}
		switch {
		case err != nil:
			a.err = err
			a.events.Release()
			return http1.Stop
		case !ok:
			return a.stream.awaited()
		case a.stream.done:
			a.events.Release()
			if !a.reusable {
				return http1.Stop
			}
			return http1.Drain
		}
		b = rest
	}
}

func (a *answer) addText(b []byte, most int) {
	a.text = append(a.text, b[:min(len(b), most-len(a.text))]...)
}

// End implements http1.Sink.
func (a *answer) End(err error) {
	if a.stream.done {
		return
	}
	done, failure := a.events.End()
	switch {
	case failure != nil:
		a.err = failure
	case done:
		a.stream.done = true
	default:
		a.stream.end(err)
		a.err = err
	}
	a.events.Release()
}

// result classifies the answer, given the error of writing the request.
func (a *answer) result(writeErr error) (replay.Class, error) {
	switch {
	case a.status == 0:
		return noAnswer(a.err, writeErr)
	case a.status != statusOK:
		return replay.HTTPError, errors.New(errorText(a.status, a.text, a.location))
	case writeErr != nil:
		return replay.Connect, writeErr
	}
	return a.stream.result(a.err)
}

// noAnswer classifies a request that ended before the head. The write error takes
// precedence, as it came first.
func noAnswer(err, writeErr error) (replay.Class, error) {
	var malformed *http1.HeadError
	var op *net.OpError
	switch {
	case writeErr != nil && (!errors.As(err, &op) || op.Op != "remote error"): // an alert of TLS says more
		err = writeErr
	case errors.Is(err, http1.ErrInterim):
		return replay.Protocol, err
	case errors.As(err, &malformed):
		return replay.Protocol, fmt.Errorf("not an HTTP response: %w", err)
	}
	return replay.Connect, fmt.Errorf("connection closed before a response: %w", err)
}

// retryAfter returns the wait that a Retry-After header, in seconds or a date,
// asks for: 0 if the date has passed, none if the header is absent or malformed.
func retryAfter(value string, now time.Time) trace.Opt[time.Duration] {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return trace.Some(time.Duration(seconds) * time.Second)
	}
	at, err := fasthttp.ParseHTTPDate([]byte(value))
	if err != nil {
		return trace.Opt[time.Duration]{}
	}
	return trace.Some(max(at.Sub(now), 0))
}
