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
	body    []byte
	expect  int // output tokens
	timeout time.Duration
}

// Send implements replay.Call.
func (c *call) Send(ctx context.Context) replay.Outcome {
	deadline := time.Now().Add(c.timeout)
	x, err := c.client.connect(ctx, deadline)
	if err != nil {
		return c.fail(ctx, replay.Outcome{Done: time.Now()}, replay.Connect, err)
	}
	// A deadline in the past ends every wait in the connection at once.
	unwatch := context.AfterFunc(ctx, func() { x.raw.SetDeadline(time.Unix(1, 0)) })
	o := x.exchange(ctx, c)
	if o.Done = x.conn.arrived; o.Done.IsZero() {
		o.Done = time.Now()
	}
	// Where the watch has begun to act, its deadline may come at any time: such
	// a connection must not reach another request.
	x.release(unwatch() && x.reusable)
	return o
}

// fail classes an error. What the user or the clock ended is told apart from
// what the server did.
func (c *call) fail(ctx context.Context, o replay.Outcome, class replay.Class, err error) replay.Outcome {
	o.Class, o.Error = class, c.client.legible(err.Error())
	if class != replay.Connect && class != replay.Truncated {
		return o
	}
	switch {
	case ctx.Err() != nil:
		o.Class, o.Error = replay.Canceled, "ended by the user"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, fasthttp.ErrTimeout):
		o.Class, o.Error = replay.Timeout, fmt.Sprintf("no complete answer within %v", c.timeout)
	}
	return o
}
