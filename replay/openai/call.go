package openai

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay"
	"moontide/replay/openai/http1"
)

// call is one prepared request. It is a replay.Call, Opener and Starter.
type call struct {
	client     *Client
	server     *server
	head, body []byte
	model      string // if there are several
	continued  *continued
	kept       *kept // nil unless the answer is kept
	// body[promptStart:promptEnd] is the prompt's member.
	promptStart, promptEnd int
	timeout, cancelAfter   time.Duration
	canceled               bool              // cancelAfter ends before timeout
	maxText                int               // see answer
	maxChunks              int               // of the answer
	onToken                func(data []byte) // may be nil
	opened                 *http1.Conn       // by Open; nil if it failed
	sent                   *exchange         // nil until the request is begun
	told                   tokenEvidence     // by the answer
}

// exchange is a request in flight.
type exchange struct {
	conn        *http1.Conn
	response    http1.Response
	answer      answer
	connectTime time.Duration
	head, body  []byte // to send them again; nil if the connection is new
}

// newCall returns a request to a server; session may be "".
func (c *Client) newCall(s *server, session string, body []byte, osl int) *call {
	var head fasthttp.RequestHeader
	s.head.CopyTo(&head)
	c.addSession(&head, session)
	head.SetContentLength(len(body))
	return &call{client: c, server: s, head: head.Header(), body: body, maxChunks: maxChunks(osl), timeout: c.cfg.Timeout}
}

// maxChunks returns the number of token chunks above which an answer is not one of
// at most osl tokens, even if a gateway divides tokens: the times of chunks take
// memory.
func maxChunks(osl int) int { return 4096 + 16*osl }

// Open implements replay.Opener. Send will return any error.
func (c *call) Open(ctx context.Context) {
	if conn, err := c.server.host.Conn(ctx, time.Now().Add(c.timeout)); err == nil {
		c.opened = conn
	}
}

// Discard implements replay.Opener.
func (c *call) Discard() {
	if c.opened != nil {
		c.server.host.Put(c.opened)
		c.opened = nil
	}
}

// Start implements replay.Starter: it sends the request if a connection is ready.
func (c *call) Start() {
	began := time.Now()
	if conn := c.ready(); conn != nil {
		c.begin(conn, began)
	}
}

// ready returns the connection opened by Open, or an idle one, or nil.
func (c *call) ready() *http1.Conn {
	opened := c.opened
	c.opened = nil
	if opened != nil {
		if opened.Alive() {
			return opened
		}
		opened.Close()
	}
	return c.server.host.Idle()
}

// begin sends the request on a connection; the search for it started at began.
func (c *call) begin(conn *http1.Conn, began time.Time) {
	x := &exchange{conn: conn, connectTime: time.Since(began), answer: answer{maxText: c.maxText}}
	x.answer.stream.maxChunks = c.maxChunks
	x.answer.stream.shared, x.answer.stream.onToken = c.client.shared, c.onToken
	x.answer.events.Budget = &c.client.budget
	x.answer.stream.kept = c.kept
	// Set one by one: a composite literal would need room on a stack that lives as
	// long as the answer.
	r, cfg := &x.response, &c.client.cfg
	r.Sink, r.IdleTimeout = &x.answer, cfg.IdleTimeout
	r.Deadline, r.StartDeadline = began.Add(c.timeout), began.Add(cfg.FirstByteTimeout)
	head, body := c.head, c.body
	if c.cancelAfter > 0 {
		if at := time.Now().Add(c.cancelAfter); at.Before(r.Deadline) {
			r.Deadline, c.canceled = at, true
		}
	}
	if conn.Used() && c.client.keep(len(body)) {
		x.head, x.body = head, body
	}
	c.sent, c.head, c.body = x, nil, nil
	conn.Begin(&x.response, head, body)
}

// Send implements replay.Call.
func (c *call) Send(ctx context.Context) replay.Outcome {
	o, a, class, err := c.do(ctx)
	s := &a.stream
	o.First, o.FirstVisible, o.Last, o.Gaps, o.ChunkTokens, o.Counts = s.first, s.visible, s.last, listOf[time.Duration](s.gaps), s.tokens.list(), s.counts
	o.ReasoningOnly = s.visible.IsZero() && !s.first.IsZero()
	c.told, o.MissingDone = s.told, s.missingDone
	if a.compressed {
		c.client.compressed.Store(true)
	}
	o.Status, o.FirstStampError, o.MaxStampError, o.Target = a.status, s.firstStampError, s.maxStampError, c.server.index
	o.Model = c.model
	if o.Stamps == replay.KernelStamps && !s.first.IsZero() {
		c.client.stamped.Add(uint64(s.gaps.n + 1))
	}
	o.RetryAfter = retryAfter(a.retryAfter, o.Done)
	if class != replay.OK {
		o.Class, o.Error = c.explain(ctx, class, err)
	}
	c.client.answered(c.continued, &o)
	return o
}

// do sends the request, unless Start did, and reads the answer.
func (c *call) do(ctx context.Context) (o replay.Outcome, a *answer, class replay.Class, err error) {
	if c.sent == nil {
		began := time.Now()
		conn := c.ready()
		if conn != nil && ctx.Err() != nil {
			conn.Close()
			conn = nil
		}
		if conn == nil {
			conn, err = c.server.host.Dial(ctx, began.Add(c.timeout))
		}
		if err != nil {
			now := time.Now()
			return replay.Outcome{ConnectTime: now.Sub(began), Done: now}, &answer{}, dialClass(err), err
		}
		c.begin(conn, began)
	}
	x, sent, writeErr := c.wait(ctx)
	c.sent, a = nil, &x.answer
	o = x.outcome(sent)
	o.Stamps = replay.ClientStamps
	if !a.stream.clientStamps {
		o.Stamps = c.client.Stamps()
	}
	class, err = a.result(writeErr)
	// Do not send another request on a connection whose stream was truncated, even
	// if its framing was correct.
	if x.response.Reusable && class != replay.Truncated && c.maxText == 0 {
		c.server.host.Put(x.conn)
	} else {
		x.conn.Close()
	}
	return o, a, class, err
}

// clientFaults are the errors of opening a connection that the client machine
// causes: it is out of file descriptors, local ports or memory.
var clientFaults = []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM}

// dialClass classifies a failure to open a connection.
func dialClass(err error) replay.Class {
	var name *net.DNSError
	if errors.As(err, &name) || slices.ContainsFunc(clientFaults, func(fault error) bool { return errors.Is(err, fault) }) {
		return replay.ClientFault
	}
	return replay.Connect
}

// explain distinguishes cancellations, abandoned requests and timeouts from server
// errors.
func (c *call) explain(ctx context.Context, class replay.Class, err error) (replay.Class, string) {
	var idle *http1.IdleError
	switch {
	case class != replay.Connect && class != replay.Truncated:
	case ctx.Err() != nil:
		return replay.Canceled, "canceled by the user"
	case errors.As(err, &idle):
		return replay.Timeout, idle.Error()
	case errors.Is(err, http1.ErrNotStarted):
		return replay.Timeout, fmt.Sprintf("first-byte timeout: no token within %v", c.client.cfg.FirstByteTimeout)
	case errors.Is(err, os.ErrDeadlineExceeded) && c.canceled:
		return replay.Abandoned, fmt.Sprintf("abandoned after %v", c.cancelAfter)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return replay.Timeout, fmt.Sprintf("request timeout: no complete answer within %v", c.timeout)
	}
	return class, c.client.printable(err.Error())
}
