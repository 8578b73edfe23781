package openai

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay"
)

// call is one request, spelled out.
type call struct {
	client  *Client
	server  *server
	head    []byte
	body    []byte
	timeout time.Duration
	plain   int // asks for text, as answer does
	opened  connection
	begun   *exchange         // nil until something was sent
	onToken func(data []byte) // nil: nobody is told
}

// exchange is a request under way.
type exchange struct {
	connection
	answer  *answer
	opening time.Duration // getting the connection took
}

// newCall spells out a request to a server, of a session where there is one.
func (c *Client) newCall(s *server, session string, body []byte) *call {
	var head fasthttp.RequestHeader
	s.head.CopyTo(&head)
	if session != "" && len(head.Peek(sessionHeader)) == 0 {
		head.Set(sessionHeader, sessionName(session))
	}
	head.SetContentLength(len(body))
	return &call{client: c, server: s, head: head.Header(), body: body, timeout: c.cfg.Timeout}
}

// Open makes ready what is no part of the request: a connection, which Send
// then uses if it still can. It may be called once, a moment before Send, and
// must have returned by then. What goes wrong, Send will meet again and tell.
func (c *call) Open(ctx context.Context) {
	if opened, err := c.client.connect(ctx, c.server, time.Now().Add(c.timeout)); err == nil {
		c.opened = opened
	}
}

// Discard gives back what Open opened, in place of Send.
func (c *call) Discard() {
	opened := c.opened
	c.opened = nil
	switch {
	case opened == nil:
	case c.client.cfg.Connections == Pooled:
		c.server.idle.put(opened, time.Now())
	default:
		opened.Close()
	}
}

// Send implements replay.Call.
func (c *call) Send(ctx context.Context) replay.Outcome {
	o, a, class, err := c.do(ctx)
	s := &a.stream
	o.First, o.Last, o.Gaps, o.Counts = s.first, s.last, s.gaps.durations(), s.counts
	o.Status, o.FirstBlur, o.Blur, o.Target = a.head.status, s.firstBlur, s.blur, c.server.index
	if o.Stamps == replay.KernelStamps {
		c.client.stamped.Add(uint64(s.gaps.n))
		if !s.first.IsZero() {
			c.client.stamped.Add(1)
		}
	}
	o.RetryAfter = retryAfter(a.head.retryAfter, o.Done)
	if class != replay.OK {
		return c.fail(ctx, o, class, err)
	}
	return o
}

// Start implements replay.Starter: it sends where a connection is at hand.
func (c *call) Start() {
	began := time.Now()
	if conn, ok := c.atHand(); ok {
		c.begin(conn, began)
	}
}

// begin begins an exchange whose connection was looked for since an instant.
func (c *call) begin(conn connection, since time.Time) {
	now := time.Now()
	c.begun = &exchange{connection: conn, answer: c.newAnswer(), opening: now.Sub(since)}
	head, body := c.head, c.body
	c.head, c.body = nil, nil
	conn.begin(c.begun.answer, since.Add(c.timeout), head, body)
}

func (c *call) newAnswer() *answer {
	a := &answer{plain: c.plain, silence: silence{limit: c.client.cfg.IdleTimeout}}
	a.stream.merges = &c.client.merges
	a.stream.onToken = c.onToken
	return a
}

// do sends the request, unless Start has, and reads the answer to its end.
func (c *call) do(ctx context.Context) (o replay.Outcome, a *answer, class replay.Class, err error) {
	if c.begun == nil {
		began := time.Now()
		conn, err := c.connection(ctx, began.Add(c.timeout))
		if err != nil {
			now := time.Now()
			return replay.Outcome{Opening: now.Sub(began), Done: now}, c.newAnswer(), replay.Connect, err
		}
		c.begin(conn, began)
	}
	x := c.begun
	c.begun, a = nil, x.answer
	sent, wrote, writeErr := x.wait(ctx)
	o.Opening, o.Sent, o.Done = x.opening, sent, a.arrived
	if sent.After(o.Done) { // a refusal does not wait for the request
		o.Done = sent
	}
	o.Stamps = replay.ClientStamps
	if !a.stream.foreign {
		o.Stamps = c.client.Stamps()
	}
	class, err = a.judge(writeErr)
	// A server that broke off an answer is not trusted with another request on
	// the same connection, however well it framed what it said.
	if wrote && a.whole && class != replay.Truncated && !a.head.closing && c.plain == 0 && c.client.cfg.Connections == Pooled {
		c.server.idle.put(x.connection, time.Now())
	} else {
		x.Close()
	}
	return o, a, class, err
}

// connection is the one at hand, or a new one.
func (c *call) connection(ctx context.Context, deadline time.Time) (connection, error) {
	if conn, ok := c.atHand(); ok {
		if ctx.Err() == nil {
			return conn, nil
		}
		conn.Close()
	}
	return c.client.open(ctx, c.server, deadline)
}

// atHand is the connection that Open opened, or one of the pool, if it can be
// used.
func (c *call) atHand() (connection, bool) {
	opened := c.opened
	c.opened = nil
	if opened != nil {
		if opened.alive() {
			return opened, true
		}
		opened.Close()
	}
	return c.server.idle.living(time.Now())
}

// fail classes an error. What the user or the clock ended is told apart from
// what the server did.
func (c *call) fail(ctx context.Context, o replay.Outcome, class replay.Class, err error) replay.Outcome {
	o.Class, o.Error = class, c.client.legible(err.Error())
	if class != replay.Connect && class != replay.Truncated {
		return o
	}
	var silent errSilent
	switch {
	case ctx.Err() != nil:
		o.Class, o.Error = replay.Canceled, "ended by the user"
	case errors.As(err, &silent):
		o.Class, o.Error = replay.Timeout, silent.Error()
	case errors.Is(err, os.ErrDeadlineExceeded):
		o.Class, o.Error = replay.Timeout, fmt.Sprintf("no complete answer within %v", c.timeout)
	}
	return o
}
