package openai

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay"
)

// afterEnd is how long a connection is given to end an answer of which nothing
// more is needed: one behind its [DONE], or one that is an error.
const afterEnd = time.Second

// maxAside bounds what is read of such an answer.
const maxAside = 64 << 10

// exchange is one request and its answer on a connection.
type exchange struct {
	raw      net.Conn // as the pool has it
	conn     *conn    // the same, or what lies under its TLS
	deadline time.Time
	in       *bufio.Reader
	out      *bufio.Writer
	header   fasthttp.ResponseHeader
	release  func(reuse bool)
	reusable bool
}

// connect takes a living connection from the pool or opens one.
func (c *Client) connect(ctx context.Context, deadline time.Time) (*exchange, error) {
	for {
		pooled, err := c.host.AcquireConn(0, false)
		if err != nil {
			return nil, err
		}
		x := &exchange{raw: pooled.Conn(), deadline: deadline}
		x.conn = timed(x.raw)
		if x.conn.Conn == nil {
			if err := c.open(ctx, x.raw, deadline); err != nil {
				c.host.CloseConn(pooled)
				return nil, err
			}
		} else if !alive(x.conn.Conn) {
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
	// A server may refuse a request, and close, before it has read all of it:
	// the answer says more than the failed write.
	writeErr := x.write(&c.client.head, c.body)
	c.body = nil
	headerErr := x.readHeader()
	o.Sent = x.conn.sent
	if headerErr != nil {
		class := replay.Connect
		if writeErr == nil && !broke(headerErr) {
			class = replay.Protocol
		}
		return c.fail(ctx, o, class, noAnswer(cmp.Or(writeErr, headerErr)))
	}
	o.Status = x.header.StatusCode()
	body := x.body()
	if o.Status != fasthttp.StatusOK {
		text, ended := x.aside(ctx, body)
		x.reusable = ended && writeErr == nil
		return c.fail(ctx, o, replay.HTTPError, errors.New(errorText(o.Status, text)))
	}
	if writeErr != nil {
		return c.fail(ctx, o, replay.Connect, writeErr)
	}
	if err := x.checkStream(); err != nil {
		return c.fail(ctx, o, replay.Protocol, err)
	}
	s := stream{out: &o, expect: c.expect}
	err := s.read(body, x.conn)
	if s.done && !x.header.ConnectionClose() {
		_, x.reusable = x.aside(ctx, body)
	}
	if class, err := s.judge(err); class != replay.OK {
		return c.fail(ctx, o, class, err)
	}
	return o
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

// readHeader reads the header of the answer, past any that only announce it.
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

// broke reports whether a header could not be read because the connection, not
// its content, was at fault.
func broke(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, fasthttp.ErrTimeout) || errors.As(err, &op)
}

func noAnswer(err error) error {
	if broke(err) {
		return fmt.Errorf("the connection broke before an answer: %w", err)
	}
	return fmt.Errorf("not an HTTP answer: %w", err)
}

// checkStream returns why the answer is not a stream of events, if it is not.
func (x *exchange) checkStream() error {
	kind, _, _ := strings.Cut(string(x.header.ContentType()), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "text/event-stream") {
		return fmt.Errorf("content type is %q, not text/event-stream", kind)
	}
	if coding := string(x.header.ContentEncoding()); coding != "" && coding != "identity" {
		return fmt.Errorf("the answer is encoded as %q, which was not asked for", coding)
	}
	return nil
}

// body frames the body of the answer.
func (x *exchange) body() io.Reader {
	switch n := x.header.ContentLength(); {
	case n == -1:
		return &chunkedBody{in: x.in}
	case n >= 0:
		return &sizedBody{x.in, int64(n)}
	default: // until the connection closes, as fasthttp has noted
		return x.in
	}
}

// aside reads the rest of a body that no measurement depends on, for a moment
// only. ended says that the next answer can follow on the connection.
func (x *exchange) aside(ctx context.Context, body io.Reader) (text []byte, ended bool) {
	if soon := time.Now().Add(afterEnd); soon.Before(x.deadline) {
		x.raw.SetDeadline(soon)
	}
	if ctx.Err() != nil { // its deadline may have been overwritten
		return nil, false
	}
	text, err := io.ReadAll(io.LimitReader(body, maxAside))
	return text, err == nil && len(text) < maxAside && !x.header.ConnectionClose()
}
