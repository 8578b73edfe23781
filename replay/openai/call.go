package openai

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"os"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay"
)

// afterDone is how long a stream may stay open behind its [DONE].
const afterDone = time.Second

// maxErrorBody bounds what is read of an answer that is an error.
const maxErrorBody = 64 << 10

// call is one request, spelled out.
type call struct {
	client *Client
	body   []byte
	expect int // output tokens
}

// Send implements replay.Call.
func (c *call) Send(ctx context.Context) replay.Outcome {
	deadline := time.Now().Add(c.client.cfg.Timeout)
	stopDial := context.AfterFunc(ctx, c.client.hangUp)
	x, err := c.client.connect(deadline)
	stopDial()
	if err != nil {
		return fail(ctx, replay.Outcome{Done: time.Now()}, replay.Connect, err)
	}
	// A deadline in the past ends every wait in the connection at once.
	unwatch := context.AfterFunc(ctx, func() { x.raw.SetDeadline(time.Unix(1, 0)) })
	o := x.exchange(ctx, c)
	x.reusable = unwatch() && x.reusable
	x.release(x.reusable)
	return o
}

// exchange is one request and its answer on a connection.
type exchange struct {
	raw      net.Conn // as the pool has it
	conn     *conn    // the same, or what lies under its TLS
	in       *bufio.Reader
	out      *bufio.Writer
	header   fasthttp.ResponseHeader
	release  func(reuse bool)
	reusable bool
}

// connect takes a living connection from the pool or opens one.
func (c *Client) connect(deadline time.Time) (*exchange, error) {
	for {
		pooled, err := c.host.AcquireConn(0, false)
		if err != nil {
			return nil, err
		}
		x := &exchange{raw: pooled.Conn()}
		x.conn = timed(x.raw)
		if used := !x.conn.arrived.IsZero(); used && !alive(x.conn.Conn) {
			c.host.CloseConn(pooled)
			continue
		}
		x.conn.begin()
		x.raw.SetDeadline(deadline)
		x.in, x.out = c.host.AcquireReader(x.raw), c.host.AcquireWriter(x.raw)
		x.release = func(reuse bool) {
			if reuse && x.in.Buffered() == 0 {
				x.raw.SetDeadline(time.Time{})
				c.host.ReleaseConn(pooled)
			} else {
				c.host.CloseConn(pooled)
			}
			c.host.ReleaseReader(x.in)
			c.host.ReleaseWriter(x.out)
		}
		return x, nil
	}
}

// exchange sends the request and reads the answer to its end.
func (x *exchange) exchange(ctx context.Context, c *call) (o replay.Outcome) {
	err := x.write(&c.client.head, c.body)
	c.body = nil
	if err == nil {
		err = x.readHeader()
	}
	o.Sent = x.conn.sent
	if err != nil {
		o.Done = time.Now()
		return fail(ctx, o, replay.Connect, err)
	}
	o.Status = x.header.StatusCode()
	body := x.bodyReader()
	if o.Status != fasthttp.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
		o.Done = x.conn.arrived
		return fail(ctx, o, replay.HTTPError, errors.New(errorText(o.Status, text)))
	}
	if kind := string(x.header.ContentType()); !strings.HasPrefix(kind, "text/event-stream") {
		o.Done = x.conn.arrived
		return fail(ctx, o, replay.Protocol, fmt.Errorf("content type is %q, not text/event-stream", oneLine(kind)))
	}
	return x.readStream(ctx, body, o, c.expect)
}

func (x *exchange) write(head *fasthttp.RequestHeader, body []byte) error {
	req := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(req)
	head.CopyTo(&req.Header)
	req.SetBodyRaw(body)
	if err := req.Write(x.out); err != nil {
		return err
	}
	return x.out.Flush()
}

func (x *exchange) readHeader() error {
	for {
		if err := x.header.Read(x.in); err != nil {
			return err
		}
		if code := x.header.StatusCode(); code >= 200 {
			return nil
		}
	}
}

// bodyReader frames the body. The standard library's chunked reader hands on
// what has arrived of a chunk; fasthttp's waits for the chunk's end.
func (x *exchange) bodyReader() io.Reader {
	switch n := x.header.ContentLength(); {
	case n == -1:
		return &chunkedBody{Reader: httputil.NewChunkedReader(x.in), in: x.in}
	case n >= 0:
		return io.LimitReader(x.in, int64(n))
	default: // until the connection closes
		x.header.SetConnectionClose()
		return x.in
	}
}

// chunkedBody reads past the trailer too, so that the connection is at the
// beginning of the next answer.
type chunkedBody struct {
	io.Reader
	in *bufio.Reader
}

func (b *chunkedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	for err == io.EOF {
		line, trailerErr := b.in.ReadSlice('\n')
		if trailerErr != nil {
			return n, io.ErrUnexpectedEOF
		}
		if len(line) <= len("\r\n") {
			break
		}
	}
	return n, err
}

// readStream reads events to the end of the stream and notes when tokens came.
func (x *exchange) readStream(ctx context.Context, body io.Reader, o replay.Outcome, expect int) replay.Outcome {
	var s stream
	s.out = &o
	s.expect = expect
	reader := newEventReader(body)
	for {
		data, err := reader.next()
		if err == nil {
			err = s.take(data, x.conn.arrived)
			if s.done {
				x.raw.SetReadDeadline(time.Now().Add(afterDone))
			}
		}
		if err == nil {
			continue
		}
		if o.Done = x.conn.arrived; o.Done.IsZero() {
			o.Done = time.Now()
		}
		x.reusable = err == io.EOF && s.done && !x.header.ConnectionClose()
		return s.end(ctx, err)
	}
}

// stream is what has been seen of an answer.
type stream struct {
	out      *replay.Outcome
	expect   int
	done     bool // [DONE] came
	finished bool // a finish reason came
	event    chunk
}

// serverError is an error object inside a stream.
type serverError struct{ message string }

func (e serverError) Error() string { return e.message }

// protocolError is an event that is not what the API says.
type protocolError struct{ message string }

func (e protocolError) Error() string { return e.message }

// take looks at the data of one event that arrived at an instant.
func (s *stream) take(data []byte, at time.Time) error {
	if string(data) == done {
		s.done = true
		return nil
	}
	// A decoder may leave in a reused element what the new text does not name.
	clear(s.event.Choices)
	s.event = chunk{Choices: s.event.Choices[:0]}
	if err := events.Unmarshal(data, &s.event); err != nil {
		return protocolError{fmt.Sprintf("an event is not what the API says: %q", oneLine(string(data)))}
	}
	if e := s.event.Error; e != nil {
		return serverError{oneLine(e.Message)}
	}
	o := s.out
	if s.event.hasToken() {
		if o.First.IsZero() {
			o.First = at
			o.Gaps = make([]time.Duration, 0, min(max(s.expect-1, 0), 1<<14))
		} else {
			o.Gaps = append(o.Gaps, at.Sub(o.Last))
		}
		o.Last = at
	}
	s.finished = s.finished || s.event.finished()
	if s.event.Usage != nil {
		o.Counts = s.event.Usage.counts(o.Counts)
	}
	return nil
}

// end judges a stream that err ended.
func (s *stream) end(ctx context.Context, err error) replay.Outcome {
	o := *s.out
	var fromServer serverError
	var garbage protocolError
	complete := s.done || s.finished && errors.Is(err, io.EOF)
	switch {
	case errors.As(err, &fromServer):
		return fail(ctx, o, replay.Server, err)
	case errors.As(err, &garbage), errors.Is(err, errEventTooLong):
		return fail(ctx, o, replay.Protocol, err)
	case !complete:
		return fail(ctx, o, replay.Truncated, fmt.Errorf("the stream ended before its end: %w", err))
	case o.First.IsZero():
		return fail(ctx, o, replay.Empty, errors.New("the answer has no tokens"))
	}
	return o
}

// fail classes an error. What the user or the clock ended is told apart from
// what the server did.
func fail(ctx context.Context, o replay.Outcome, class replay.Class, err error) replay.Outcome {
	o.Class, o.Error = class, oneLine(err.Error())
	var timeout net.Error
	switch {
	case ctx.Err() != nil:
		o.Class, o.Error = replay.Canceled, "ended by the user"
	case class == replay.HTTPError:
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, fasthttp.ErrTimeout), errors.As(err, &timeout) && timeout.Timeout():
		o.Class = replay.Timeout
	}
	return o
}
