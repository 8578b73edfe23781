package openai

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"moontide/replay"
	"moontide/replay/openai/http1"
)

// A server may close a connection that it has announced to keep, and a request that
// is on its way then is lost. llama.cpp does so after each stream. HTTP clients send
// such a request again.

const (
	// maxKept limits the requests that are kept to be sent again, in bytes over all
	// in flight. Others fail.
	maxKept = 64 << 20
	// resendWithin is how soon the connection must have been closed: later, the
	// server may have worked on the request.
	resendWithin = 100 * time.Millisecond
)

// keep reserves room for a request.
func (c *Client) keep(size int) bool {
	if c.kept.Add(int64(size)) <= maxKept {
		return true
	}
	c.kept.Add(-int64(size))
	return false
}

// wait returns when the response to the request in flight is over. If the server
// has closed a used connection instead of answering, it sends the request once more,
// on a new connection.
func (c *call) wait(ctx context.Context) (x *exchange, sent time.Time, writeErr error) {
	x = c.sent
	sent, writeErr = x.conn.Wait(ctx)
	if x.body == nil {
		return x, sent, writeErr
	}
	head, body := x.head, x.body
	x.head, x.body = nil, nil
	c.client.kept.Add(-int64(len(body)))
	if ctx.Err() != nil || !x.unanswered(sent, writeErr, c.client.resendWithin) {
		return x, sent, writeErr
	}
	began := sent.Add(-x.connectTime) // the first attempt was part of connecting
	conn, err := c.server.host.Dial(ctx, began.Add(c.timeout))
	if err != nil {
		return x, sent, writeErr
	}
	x.conn.Close()
	c.head, c.body = head, body
	c.begin(conn, began)
	x = c.sent
	sent, writeErr = x.conn.Wait(ctx)
	return x, sent, writeErr
}

// unanswered reports whether the connection was closed soon after the request was
// sent, before any byte of a response.
func (x *exchange) unanswered(sent time.Time, writeErr error, within time.Duration) bool {
	if x.answer.status != 0 || x.response.PartOfHead() || x.response.Received.Sub(sent) > within {
		return false
	}
	var malformed *http1.HeadError
	for _, err := range []error{writeErr, x.answer.err} {
		switch {
		case err == nil:
		case errors.As(err, &malformed):
			return false
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
			return true
		}
	}
	return false
}

// outcome has the instants of an exchange.
func (x *exchange) outcome(sent time.Time) replay.Outcome {
	o := replay.Outcome{ConnectTime: x.connectTime, Sent: sent, Done: x.response.Received}
	if sent.After(o.Done) { // the server refused the request before it was sent
		o.Done = sent
	}
	return o
}
